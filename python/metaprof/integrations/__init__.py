"""metaprof where people already are: hugging_face, lightning, notebook, testing. Each is imported by who has the library."""
