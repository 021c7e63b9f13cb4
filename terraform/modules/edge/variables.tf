variable "name" {
  description = "Prefix of every resource's name."
  type        = string
}

variable "vpc_id" {
  description = "Network."
  type        = string
}

variable "subnets" {
  description = "Subnets of the balancer: public ones, or private ones for an internal balancer."
  type        = list(string)
}

variable "private_subnets" {
  description = "Private subnets."
  type        = list(string)
}

variable "server_group" {
  description = "Security group of the servers."
  type        = string
}

variable "domain" {
  description = "Host name that clients use."
  type        = string
  validation {
    condition     = length(var.domain) <= 253 && can(regex("^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,63}$", var.domain))
    error_message = "domain must be a host name in lower case, such as engine.example.com."
  }
}

variable "zone_id" {
  description = "Zone of the domain in Route 53, in which the name and the certificate are made; null where DNS is elsewhere."
  type        = string
  default     = null
  validation {
    condition     = var.zone_id == null || can(regex("^Z[A-Z0-9]{1,31}$", var.zone_id))
    error_message = "zone_id must be that of a zone in Route 53, such as Z0123456789ABCDEFGHIJ."
  }
}

variable "certificate_arn" {
  description = "A certificate of ACM for the domain; needed without zone_id."
  type        = string
  default     = null
  validation {
    condition     = var.certificate_arn != null || var.zone_id != null
    error_message = "Give certificate_arn, or zone_id so that a certificate can be made."
  }
  validation {
    condition     = var.certificate_arn == null || can(regex("^arn:aws(-cn|-us-gov)?:acm:[a-z0-9-]+:[0-9]{12}:certificate/[a-f0-9-]+$", var.certificate_arn))
    error_message = "certificate_arn must be that of a certificate of ACM."
  }
}

variable "internal" {
  description = "A balancer that only the network itself reaches."
  type        = bool
  default     = false
}

variable "allowed_cidrs" {
  description = "Networks that may connect."
  type        = list(string)
  default     = ["0.0.0.0/0"]
  validation {
    condition     = length(var.allowed_cidrs) > 0 && alltrue([for cidr in var.allowed_cidrs : can(cidrnetmask(cidr))])
    error_message = "allowed_cidrs must be IPv4 networks such as 203.0.113.0/24."
  }
}

variable "idle_timeout_secs" {
  description = "Seconds without a byte after which a connection ends: longer than any poll waits, and than the 15 s between two signs of life of a stream."
  type        = number
  default     = 330
  validation {
    condition     = var.idle_timeout_secs >= 120 && var.idle_timeout_secs <= 4000
    error_message = "idle_timeout_secs must be from 120 to 4000."
  }
}

variable "deletion_protection" {
  description = "Refuses to delete the balancers until this is false."
  type        = bool
  default     = true
}

variable "access_logs_bucket" {
  description = "Bucket for the balancer's access logs; null for none."
  type        = string
  default     = null
}

variable "flight" {
  description = "A balancer for Arrow Flight (gRPC), within the network."
  type        = bool
  default     = false
}

variable "flight_cidrs" {
  description = "Networks that may use it; Arrow Flight asks for no token."
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for cidr in var.flight_cidrs : can(cidrnetmask(cidr)) && try(tonumber(split("/", cidr)[1]) >= 8, false)])
    error_message = "flight_cidrs must be IPv4 networks of /8 or smaller: whoever is in them reads everything."
  }
}
