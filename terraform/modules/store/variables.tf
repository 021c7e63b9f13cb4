variable "name" {
  description = "Prefix of every resource's name."
  type        = string
}

variable "bucket" {
  description = "Name of the bucket, which no other AWS account has."
  type        = string
  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$", var.bucket))
    error_message = "bucket must have 3 to 63 lower-case letters, digits and hyphens, and no dots: TLS certificates do not cover them."
  }
}

variable "prefix" {
  description = "ENGINE_PATH_PREFIX: the servers' rights end there."
  type        = string
  default     = "engine"
  validation {
    condition     = can(regex("^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*$", var.prefix))
    error_message = "prefix must be of letters, digits, _, - and single slashes between them: anything else could widen the rights."
  }
}

variable "partition" {
  description = "Partition of ARNs: aws, aws-us-gov or aws-cn."
  type        = string
  default     = "aws"
  validation {
    condition     = contains(["aws", "aws-us-gov", "aws-cn"], var.partition)
    error_message = "partition must be aws, aws-us-gov or aws-cn."
  }
}

variable "force_destroy" {
  description = "Lets `destroy` delete the bucket with everything in it."
  type        = bool
  default     = false
}

variable "deleted_days" {
  description = "Days that bytes stay recoverable after the engine has deleted them; they are paid for."
  type        = number
  default     = 3
  validation {
    condition     = var.deleted_days >= 1 && floor(var.deleted_days) == var.deleted_days
    error_message = "deleted_days must be a whole number from 1 on."
  }
}

variable "reader_principals" {
  description = "ARNs that may take the read-only role: roles of other engines. With none there is no such role."
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for arn in var.reader_principals : can(regex("^arn:aws(-cn|-us-gov)?:iam::[0-9]{12}:(role|user)/[A-Za-z0-9+=,.@_/-]+$", arn))])
    error_message = "reader_principals must be ARNs of roles or users: no accounts as a whole, and no wildcards."
  }
}
