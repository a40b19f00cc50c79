# `cmake --install` and `find_package(cenote)`.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cenote)

install(TARGETS cenote_spec cenote EXPORT cenoteTargets)
install(DIRECTORY include/cenote DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(EXPORT cenoteTargets NAMESPACE cenote:: DESTINATION ${package_dir})

configure_package_config_file(cmake/cenoteConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/cenoteConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/cenoteConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/cenoteConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/cenoteConfigVersion.cmake
  DESTINATION ${package_dir})
