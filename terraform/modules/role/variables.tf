variable "name" {
  description = "Name of the deployment."
  type        = string
}

variable "role" {
  description = "ENGINE_ROLES of these servers."
  type        = string
  validation {
    condition     = contains(["all_in_one", "edge", "query", "ingest", "committer", "compaction", "worker"], var.role)
    error_message = "role must be all_in_one, edge, query, ingest, committer, compaction or worker."
  }
}

variable "region" {
  description = "Region."
  type        = string
}

variable "image" {
  description = "Image of the engine."
  type        = string
}

variable "architecture" {
  description = "X86_64, whose HTTP driver is faster, or ARM64."
  type        = string
  default     = "X86_64"
  validation {
    condition     = contains(["X86_64", "ARM64"], var.architecture)
    error_message = "architecture must be X86_64 or ARM64."
  }
}

variable "size" {
  description = "CPU units (1024 are one core), memory, number of servers, the CPU in percent that scaling aims at, and disk."
  type = object({
    cpu        = number
    memory_mib = number
    min        = number
    max        = number
    target_cpu = number
    disk_gib   = number
  })
  validation {
    # What Fargate sells: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/fargate-tasks-services.html
    condition = try(contains({
      "256"   = [512, 1024, 2048]
      "512"   = range(1024, 4097, 1024)
      "1024"  = range(2048, 8193, 1024)
      "2048"  = range(4096, 16385, 1024)
      "4096"  = range(8192, 30721, 1024)
      "8192"  = range(16384, 61441, 4096)
      "16384" = range(32768, 122881, 8192)
    }[tostring(var.size.cpu)], var.size.memory_mib), false)
    error_message = "Fargate has no such cpu and memory_mib: 1024 goes with 2048 to 8192, 2048 with 4096 to 16384, 4096 with 8192 to 30720, in steps of 1024; see AWS's table of task sizes."
  }
  validation {
    condition     = var.size.min >= 1 && var.size.min <= var.size.max && floor(var.size.min) == var.size.min && floor(var.size.max) == var.size.max
    error_message = "min and max must be whole numbers, min at least 1 and at most max."
  }
  validation {
    condition     = var.size.target_cpu >= 20 && var.size.target_cpu <= 90
    error_message = "target_cpu must be from 20 to 90 percent."
  }
  validation {
    condition     = var.size.disk_gib >= 21 && var.size.disk_gib <= 200
    error_message = "disk_gib must be from 21 to 200: what Fargate gives a task."
  }
}

variable "env" {
  description = "Further options of the servers."
  type        = map(string)
  default     = {}
}

variable "secrets" {
  description = "Options whose value is a secret: ARNs by variable."
  type        = map(string)
  default     = {}
}

variable "ports" {
  description = "Ports that the servers listen on."
  type        = list(number)
  default     = [8080]
}

variable "target_groups" {
  description = "Target groups of balancers, by the port that they send to."
  type        = map(string)
  default     = {}
}

variable "uses_store" {
  description = "Whether these servers read and write the bucket: all but edges."
  type        = bool
}

variable "store_policy" {
  description = "Rights on the bucket, as a policy document."
  type        = string
}

variable "authority" {
  description = "Certificate authority (PEM) of the catalog; null for servers without a catalog."
  type        = string
  default     = null
}

variable "authority_file" {
  description = "File that it is written to."
  type        = string
}

variable "repository_arn" {
  description = "ECR repository of the image; null where the image is public."
  type        = string
  default     = null
}

variable "stop_timeout_secs" {
  description = "Seconds from SIGTERM to SIGKILL; the servers drain for 15 less."
  type        = number
  default     = 45
  validation {
    condition     = var.stop_timeout_secs >= 20 && var.stop_timeout_secs <= 120
    error_message = "stop_timeout_secs must be from 20 to 120, the most that Fargate waits."
  }
}

variable "log_days" {
  description = "Days that logs are kept."
  type        = number
  default     = 30
}

variable "cluster_arn" {
  description = "ECS cluster."
  type        = string
}

variable "cluster_name" {
  description = "Its name."
  type        = string
}

variable "subnets" {
  description = "Private subnets."
  type        = list(string)
}

variable "security_groups" {
  description = "Security groups of the servers."
  type        = list(string)
}

variable "namespace_id" {
  description = "Namespace of service discovery."
  type        = string
}
