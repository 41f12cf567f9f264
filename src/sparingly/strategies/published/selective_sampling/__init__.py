"""Published algorithms that choose what to label on a stream: Neuronal, NeurAL, ALPS, Cesa and others."""
