output "url" {
  description = "Where clients reach the engine."
  value       = module.engine.url
}

output "balancer" {
  description = "Name that the domain has to point to, where its zone is not in Route 53."
  value       = module.engine.balancer
}

output "flight" {
  description = "Balancer for Arrow Flight; null without it."
  value       = module.engine.flight
}

output "bucket" {
  description = "Bucket of extents and staged writes."
  value       = module.engine.bucket
}

output "catalog" {
  description = "Instance of the catalog."
  value       = module.engine.catalog
}

output "roles" {
  description = "ECS service and IAM role of each role."
  value       = module.engine.roles
}

output "reader_role" {
  description = "IAM role by which other engines read tables; null without reader_principals."
  value       = module.engine.reader_role
}

output "secrets" {
  description = "Where the secrets are; their values are in no output."
  value       = module.engine.secrets
}

output "worker_token_secrets" {
  description = "Where the worker token of each sandbox node belongs."
  value       = module.engine.worker_token_secrets
}

output "metrics" {
  description = "Where Grafana asks for metrics; null without monitoring."
  value       = module.engine.metrics
}
