"""What several strategies share: confidence bounds, classifiers, two networks, linear models, several experts."""
