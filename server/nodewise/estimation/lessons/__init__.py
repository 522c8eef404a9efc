"""What a store of profiles teaches: priors, and how far off estimators are."""
