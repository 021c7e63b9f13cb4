variable "name" {
  description = "Prefix of every resource's name."
  type        = string
}

variable "region" {
  description = "Region."
  type        = string
}

variable "nodes" {
  description = "Nodes by name: the type of each instance, and its disk, which holds the sandboxes."
  type        = map(object({ instance_type = string, disk_gib = number }))
  validation {
    condition     = alltrue([for node, _ in var.nodes : can(regex("^[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?$", node))])
    error_message = "Names of nodes must have 1 to 20 lower-case letters, digits and hyphens."
  }
  validation {
    condition     = alltrue([for node in values(var.nodes) : can(regex("^[a-z0-9-]+\\.[a-z0-9-]+$", node.instance_type))])
    error_message = "instance_type must look like m7i.xlarge."
  }
  validation {
    condition     = alltrue([for node in values(var.nodes) : node.disk_gib >= 30 && node.disk_gib <= 16384])
    error_message = "disk_gib must be from 30 to 16384."
  }
}

variable "image_id" {
  description = "Machine image: Debian 12 or newer. By default the newest of Debian's own, for x86-64."
  type        = string
  default     = "resolve:ssm:/aws/service/debian/release/12/latest/amd64"
  validation {
    condition     = can(regex("^(ami-[0-9a-f]{8,17}|resolve:ssm:/[A-Za-z0-9/_.-]+)$", var.image_id))
    error_message = "image_id must be ami-… or resolve:ssm:/…"
  }
}

variable "server_url" {
  description = "Servers that the nodes connect to, within the network."
  type        = string
  validation {
    condition     = can(regex("^https?://[a-z0-9.-]+(:[0-9]+)?$", var.server_url))
    error_message = "server_url must be an address without a path, such as http://query.engine.internal:8080."
  }
}

variable "program" {
  description = "The engine as a single file, as its release.json names it."
  type        = object({ url = string, sha256 = string })
  validation {
    condition     = can(regex("^https://[A-Za-z0-9.-]+(:[0-9]+)?/[A-Za-z0-9._~/%+-]+$", var.program.url)) && can(regex("^[0-9a-f]{64}$", var.program.sha256))
    error_message = "program needs an https address without quotes, blanks or a query, and its SHA-256."
  }
}

variable "runsc" {
  description = "gVisor's runsc, and its SHA-512 as its release publishes it."
  type        = object({ url = string, sha512 = string })
  validation {
    condition     = can(regex("^https://[A-Za-z0-9.-]+(:[0-9]+)?/[A-Za-z0-9._~/%+-]+$", var.runsc.url)) && can(regex("^[0-9a-f]{128}$", var.runsc.sha512))
    error_message = "runsc needs an https address without quotes, blanks or a query, and its SHA-512."
  }
}

variable "drain_timeout_secs" {
  description = "Seconds that a node's jobs may take to end when its instance is to go."
  type        = number
  default     = 300
  validation {
    condition     = var.drain_timeout_secs >= 0 && var.drain_timeout_secs <= 3600
    error_message = "drain_timeout_secs must be from 0 to 3600."
  }
}

variable "recovery_days" {
  description = "Days that deleted secrets can be brought back; 0 deletes them at once."
  type        = number
  default     = 7
}

variable "vpc_id" {
  description = "Network."
  type        = string
}

variable "subnets" {
  description = "Private subnets."
  type        = list(string)
}

variable "server_group" {
  description = "Security group of the servers."
  type        = string
}
