# an argument and a folder that are not UTF-8
# command: sh -c "d=$(printf 'w\\377'); mkdir $d; cp {program} training.py $d/; exec {python} $d/words_that_are_no_text.py $(printf 'a\\377')"
# options: --json run.json
# status: 0
# says: FITS h200
# writes: run.json
from training import *

step()
