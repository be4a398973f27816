"""metaprof where people already are: hugging_face, lightning, notebook, testing, trackers. Each is imported by who has the library."""
