# Writes SOURCE_FILE with the commit of FOLDER and its date, and leaves it alone where it has that already. A source distribution has both
# in a file (tools/release). Another tree without git has none.
# `moves`: the file that changes where git moves to another commit.
set(moves "")
if(EXISTS "${FOLDER}/tools/cmake/commit.txt")
  file(STRINGS "${FOLDER}/tools/cmake/commit.txt" lines)
  list(GET lines 0 commit)
  list(GET lines 1 date)
else()
  execute_process(
    COMMAND git -C "${FOLDER}" rev-parse --short=10 HEAD
    OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(
    COMMAND git -C "${FOLDER}" log -1 --format=%cs
    OUTPUT_VARIABLE date ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(
    COMMAND git -C "${FOLDER}" rev-parse --path-format=absolute --git-path logs/HEAD
    OUTPUT_VARIABLE moves ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
file(CONFIGURE OUTPUT "${SOURCE_FILE}" CONTENT [[
namespace metaprof {
extern const char *const kCommit, *const kCommitDate;
const char *const kCommit = "@commit@", *const kCommitDate = "@date@";
}
]] @ONLY)
