variable "name" {
  description = "Prefix of every resource's name."
  type        = string
}

variable "region" {
  description = "Region of the network."
  type        = string
}

variable "cidr" {
  description = "Addresses of the network: a private /16 to /20."
  type        = string
  default     = "10.40.0.0/16"
  validation {
    condition     = can(cidrnetmask(var.cidr)) && try(tonumber(split("/", var.cidr)[1]), 0) >= 16 && try(tonumber(split("/", var.cidr)[1]), 99) <= 20
    error_message = "cidr must be an IPv4 network of /16 to /20, such as 10.40.0.0/16."
  }
}

variable "zone_count" {
  description = "Availability zones."
  type        = number
  default     = 2
  validation {
    condition     = contains([2, 3], var.zone_count)
    error_message = "zone_count must be 2 or 3."
  }
}

variable "nat_per_zone" {
  description = "A NAT gateway in each zone, so that losing one zone does not cut the others off. One costs less."
  type        = bool
  default     = false
}

variable "log_days" {
  description = "Days that logs of connections are kept."
  type        = number
  default     = 30
}
