#include "cli/metaprof.h"

int main(int count, char** words) { return metaprof::run_metaprof(count, words); }
