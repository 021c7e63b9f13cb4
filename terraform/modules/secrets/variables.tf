variable "name" {
  description = "Prefix of every resource's name."
  type        = string
}

variable "values" {
  description = "What is written into the secrets; needed when they are made, and with each higher version. Never stored."
  type = object({
    catalog_password = string
    secret_key       = string
    internal_bearer  = string
    admin_token      = string
    scrape_token     = string
  })
  default   = null
  sensitive = true
  ephemeral = true
  validation {
    # They stand in an address and in a list that commas and colons separate.
    condition     = var.values == null || try(alltrue([for name, text in var.values : can(regex("^[A-Za-z0-9_-]{24,128}$", text)) || (name == "secret_key" && can(regex("^[A-Za-z0-9+/=]{44}$", text)))]), false)
    error_message = "Each value needs 24 to 128 letters, digits, _ or - (`openssl rand -hex 24`); secret_key is 32 bytes in base64 (`openssl rand -base64 32`)."
  }
}

variable "values_version" {
  description = "A higher number writes the values again."
  type        = number
  default     = 1
  validation {
    condition     = var.values_version >= 1 && floor(var.values_version) == var.values_version
    error_message = "values_version must be a whole number from 1 on."
  }
}

variable "catalog" {
  description = "Where the catalog is, and its user."
  type        = object({ host = string, port = number, database = string, user = string })
}

variable "authority_file" {
  description = "File in the servers' containers with the certificate authority of the catalog."
  type        = string
}

variable "recovery_days" {
  description = "Days that deleted secrets can be brought back; 0 deletes them at once."
  type        = number
  default     = 7
  validation {
    condition     = var.recovery_days == 0 || (var.recovery_days >= 7 && var.recovery_days <= 30)
    error_message = "recovery_days must be 0, or from 7 to 30."
  }
}
