"""Many tables at once: marginals that agree with one another, and synthetic rows made from them."""
