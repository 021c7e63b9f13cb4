# The variables of `aws/`, which checks them.

variable "name" {
  description = "Name of the deployment, and prefix of every resource's."
  type        = string
}

variable "region" {
  description = "Region of AWS."
  type        = string
}

variable "partition" {
  description = "Partition of ARNs: aws, aws-us-gov or aws-cn."
  type        = string
  default     = "aws"
}

variable "image" {
  description = "Image of the engine, in a registry that Fargate reaches; best by its digest."
  type        = string
}

variable "repository_arn" {
  description = "ECR repository of the image; null where it is public."
  type        = string
  default     = null
}

variable "roles" {
  description = "Servers by role (edge, query, ingest, committer, compaction, worker): CPU units (1024 are one core), memory, least and most servers, the CPU in percent that scaling aims at, disk, and further options."
  type = map(object({
    cpu        = number
    memory_mib = number
    min        = number
    max        = number
    target_cpu = optional(number, 60)
    disk_gib   = optional(number, 21)
    env        = optional(map(string), {})
  }))
}

variable "env" {
  description = "Options of all servers, by variable."
  type        = map(string)
  default     = {}
}

variable "secrets" {
  description = "Values of the secrets, needed when they are made: in TF_VAR_secrets, never in a file. They are in no state and no plan."
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
}

variable "secrets_version" {
  description = "A higher number writes the secrets again."
  type        = number
  default     = 1
}

variable "catalog" {
  description = "Machine and first disk of the catalog, and whether it has a synchronous standby."
  type = object({
    instance_class = optional(string, "db.m7g.large")
    storage_gib    = optional(number, 50)
    standby        = optional(bool, true)
  })
  default = {}
}

variable "bucket" {
  description = "Name of the bucket, which no other AWS account has."
  type        = string
}

variable "prefix" {
  description = "ENGINE_PATH_PREFIX."
  type        = string
  default     = "engine"
}

variable "reader_principals" {
  description = "ARNs that may take the read-only role: roles of other engines."
  type        = list(string)
  default     = []
}

variable "ingest_mode" {
  description = "ENGINE_INGEST_MODE: sync, or staged."
  type        = string
  default     = "staged"
}

variable "architecture" {
  description = "X86_64, whose HTTP driver is faster, or ARM64."
  type        = string
  default     = "X86_64"
}

variable "domain" {
  description = "Host name that clients use."
  type        = string
}

variable "zone_id" {
  description = "Zone of the domain in Route 53; null where DNS is elsewhere, and then certificate_arn is needed."
  type        = string
  default     = null
}

variable "certificate_arn" {
  description = "Certificate of ACM for the domain."
  type        = string
  default     = null
}

variable "internal" {
  description = "A balancer that only the network itself reaches."
  type        = bool
  default     = false
}

variable "allowed_cidrs" {
  description = "Networks that may connect to the balancer."
  type        = list(string)
  default     = ["0.0.0.0/0"]
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
}

variable "cidr" {
  description = "Addresses of the network: a private /16 to /20."
  type        = string
  default     = "10.40.0.0/16"
}

variable "zone_count" {
  description = "Availability zones: 2 or 3."
  type        = number
  default     = 2
}

variable "nat_per_zone" {
  description = "A NAT gateway in each zone."
  type        = bool
  default     = false
}

variable "sandbox_nodes" {
  description = "Machines that run sandboxes, by name."
  type        = map(object({ instance_type = string, disk_gib = number }))
  default     = {}
}

variable "sandbox_programs" {
  description = "What those machines install; needed where there are any."
  type = object({
    engine = object({ url = string, sha256 = string })
    runsc  = object({ url = string, sha512 = string })
  })
  default = null
}

variable "monitoring" {
  description = "Amazon's Prometheus with the repository's alerts."
  type        = bool
  default     = true
}

variable "alert_topic_arn" {
  description = "SNS topic that alerts go to; null shows them in the workspace only."
  type        = string
  default     = null
}

variable "log_days" {
  description = "Days that logs are kept: what CloudWatch offers."
  type        = number
  default     = 30
}

variable "deletion_protection" {
  description = "Refuses to delete the catalog and the balancers until this is false."
  type        = bool
  default     = true
}

variable "force_destroy" {
  description = "Lets `destroy` delete the bucket with everything in it, and secrets at once."
  type        = bool
  default     = false
}
