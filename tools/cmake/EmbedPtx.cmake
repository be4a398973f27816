# cmake -DPTX=FILE -DCPP=FILE -P EmbedPtx.cmake: PTX as a text of a C++ file.
file(READ "${PTX}" text)
file(WRITE "${CPP}" "namespace metaprof::cuda {\nextern const char* const kKernelsPtx;\nconst char* const kKernelsPtx = R\"ptx(${text})ptx\";\n}  // namespace metaprof::cuda\n")
