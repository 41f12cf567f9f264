"""At home in river, scikit-learn, Gymnasium and Label Studio."""
