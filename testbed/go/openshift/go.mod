// Types of OpenShift, for their published CRDs alone: nothing is built from it.
module keelson/openshift

go 1.26.0

require github.com/openshift/api v0.0.0-20251015095338-264e80a2b6e7
