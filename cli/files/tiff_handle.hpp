// libtiff on our files: where its bytes come from and go to, how much memory it may take, and its complaints as text.
#pragma once

#include <tiffio.h>

#include <cstdarg>
#include <cstdio>
#include <exception>

#include "files/input_file.hpp"
#include "files/output_file.hpp"

namespace cenote::cli {

class TiffHandle {
 public:
  TiffHandle(InputFile& file, Index memory) : name_(file.name()), in_(&file) {
    open("rm", memory);  // m: not mapped, so that a truncated file is a short read
  }
  TiffHandle(OutputFile& file, bool big) : name_(file.name()), out_(&file) { open(big ? "w8" : "w", 0); }
  TiffHandle(const TiffHandle&) = delete;
  TiffHandle& operator=(const TiffHandle&) = delete;
  ~TiffHandle() { close(); }

  [[nodiscard]] TIFF* get() const { return tiff_; }
  // What libtiff does when it closes a file may fail as well.
  void close() {
    if (tiff_ != nullptr) TIFFClose(std::exchange(tiff_, nullptr));
  }
  void rethrow_failure() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  [[noreturn]] void fail(const std::string& otherwise) {
    rethrow_failure();
    throw FileError(name_ + ": TIFF: " + (complaint_.empty() ? otherwise : complaint_));
  }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  void open(const char* mode, Index memory) {
    TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
    if (memory > 0) TIFFOpenOptionsSetMaxSingleMemAlloc(options, static_cast<tmsize_t>(memory));
    TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, this);
    TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, this);
    tiff_ = TIFFClientOpenExt(name_.c_str(), mode, this, on_read, on_write, on_seek, on_close, on_size, nullptr,
                              nullptr, options);
    TIFFOpenOptionsFree(options);
    if (tiff_ == nullptr) fail("cannot be read");
  }

  static TiffHandle& self(thandle_t handle) { return *static_cast<TiffHandle*>(handle); }
  // The first complaint is the cause, the others follow from it.
  static int on_error(TIFF*, void* user, const char*, const char* format, va_list arguments) {
    auto& handle = *static_cast<TiffHandle*>(user);
    std::array<char, 256> text{};
    (void)std::vsnprintf(text.data(), text.size(), format, arguments);
    for (char& c : text)
      if (c != '\0' && static_cast<unsigned char>(c) < 32) c = ' ';
    if (handle.complaint_.empty()) handle.complaint_ = text.data();
    return 1;
  }
  static int on_warning(TIFF*, void*, const char*, const char*, va_list) { return 1; }
  // No exception may pass through libtiff.
  template <class F>
  tmsize_t carried(F&& work) {
    try {
      return work();
    } catch (...) {
      failure_ = std::current_exception();
      return -1;
    }
  }
  static tmsize_t on_read(thandle_t handle, void* to, tmsize_t bytes) {
    TiffHandle& h = self(handle);
    return h.carried([&] {
      const auto wanted = static_cast<std::size_t>(bytes);
      const std::size_t got = h.in_ != nullptr ? h.in_->read_at(h.at_, to, wanted) : h.out_->read(to, wanted);
      h.at_ += static_cast<Index>(got);
      return static_cast<tmsize_t>(got);
    });
  }
  static tmsize_t on_write(thandle_t handle, void* from, tmsize_t bytes) {
    TiffHandle& h = self(handle);
    if (h.out_ == nullptr) return -1;
    return h.carried([&] {
      h.out_->write(from, static_cast<std::size_t>(bytes));
      return bytes;
    });
  }
  static toff_t on_seek(thandle_t handle, toff_t offset, int whence) {
    TiffHandle& h = self(handle);
    const auto by = static_cast<Index>(offset);
    if (h.out_ != nullptr) return static_cast<toff_t>(h.out_->seek(by, whence));
    const Index base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? h.at_ : h.in_->size();
    Index place = 0;
    if (__builtin_add_overflow(base, by, &place) || place < 0) return static_cast<toff_t>(-1);
    h.at_ = place;
    return static_cast<toff_t>(place);
  }
  static int on_close(thandle_t) { return 0; }
  static toff_t on_size(thandle_t handle) {
    TiffHandle& h = self(handle);
    if (h.in_ != nullptr) return static_cast<toff_t>(h.in_->size());
    const Index at = h.out_->seek(0, SEEK_CUR);
    const Index end = h.out_->seek(0, SEEK_END);
    (void)h.out_->seek(at, SEEK_SET);
    return static_cast<toff_t>(end);
  }

  std::string name_;
  InputFile* in_ = nullptr;
  OutputFile* out_ = nullptr;
  Index at_ = 0;
  TIFF* tiff_ = nullptr;
  std::string complaint_;
  std::exception_ptr failure_;
};

}  // namespace cenote::cli
