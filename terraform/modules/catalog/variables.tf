variable "name" {
  description = "Prefix of every resource's name."
  type        = string
}

variable "region" {
  description = "Region; says which certificate authority signs the catalog's certificate."
  type        = string
  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", var.region)) && fileexists("${path.module}/authorities/${var.region}.pem")
    error_message = "There is no certificate authority of RDS for this region in modules/catalog/authorities: add its PEM file (the CA RSA2048 G1 of https://truststore.pki.rds.amazonaws.com/REGION/REGION-bundle.pem)."
  }
}

variable "vpc_id" {
  description = "Network."
  type        = string
}

variable "subnets" {
  description = "Private subnets in at least two zones."
  type        = list(string)
}

variable "client_groups" {
  description = "Security groups that may connect, by what they are."
  type        = map(string)
}

variable "engine_version" {
  description = "PostgreSQL: a major version, or one with its minor version."
  type        = string
  default     = "17"
  validation {
    condition     = can(regex("^(15|16|17)(\\.[0-9]+)?$", var.engine_version))
    error_message = "engine_version must be 15, 16 or 17, with or without a minor version."
  }
}

variable "instance_class" {
  description = "Machine of the catalog."
  type        = string
  default     = "db.m7g.large"
  validation {
    condition     = can(regex("^db\\.[a-z0-9]+\\.[a-z0-9]+$", var.instance_class))
    error_message = "instance_class must look like db.m7g.large."
  }
}

variable "storage_gib" {
  description = "Disk at the start; it grows by itself to ten times as much."
  type        = number
  default     = 50
  validation {
    condition     = var.storage_gib >= 20 && var.storage_gib <= 6553
    error_message = "storage_gib must be from 20 to 6553."
  }
}

variable "max_connections" {
  description = "Connections of all servers together, and some for administrators."
  type        = number
  default     = 400
  validation {
    condition     = var.max_connections >= 50 && var.max_connections <= 5000
    error_message = "max_connections must be from 50 to 5000: lower ENGINE_CATALOG_MAX_CONNS, or run fewer servers."
  }
}

variable "standby" {
  description = "A synchronous standby in another zone. Without it, losing a zone may lose acknowledged writes."
  type        = bool
  default     = true
}

variable "backup_days" {
  description = "Days that the catalog can be restored to any moment of."
  type        = number
  default     = 14
  validation {
    condition     = var.backup_days >= 1 && var.backup_days <= 35
    error_message = "backup_days must be from 1 to 35."
  }
}

variable "deletion_protection" {
  description = "Refuses to delete the catalog until this is false."
  type        = bool
  default     = true
}
