variable "name" {
  description = "Prefix of every resource's name."
  type        = string
}

variable "region" {
  description = "Region."
  type        = string
}

variable "roles" {
  description = "Roles that are scraped."
  type        = list(string)
}

variable "namespace" {
  description = "Domain of service discovery."
  type        = string
}

variable "scrape_token_arn" {
  description = "Secret with a token of the role read: with it metrics show the names of databases."
  type        = string
}

variable "prometheus_image" {
  description = "Prometheus 3, or 2.32 and newer."
  type        = string
  default     = "quay.io/prometheus/prometheus:v3.7.3"
}

variable "alert_topic_arn" {
  description = "SNS topic that alerts go to, whose policy lets aps.amazonaws.com publish; null shows them in the workspace only."
  type        = string
  default     = null
  validation {
    condition     = var.alert_topic_arn == null || can(regex("^arn:aws(-cn|-us-gov)?:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+$", var.alert_topic_arn))
    error_message = "alert_topic_arn must be that of an SNS topic."
  }
}

variable "log_days" {
  description = "Days that logs are kept."
  type        = number
  default     = 30
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

variable "cluster_arn" {
  description = "ECS cluster."
  type        = string
}
