"""metaprof where people already are: hugging_face, lightning, notebook, testing, trackers. Import the one whose library you have."""
