output "url" {
  description = "Where clients reach the engine."
  value       = "https://${var.domain}"
}

output "balancer" {
  description = "Name that the domain has to point to, where its zone is not in Route 53."
  value       = module.edge.dns_name
}

output "flight" {
  description = "Balancer for Arrow Flight; null without it."
  value       = module.edge.flight_dns_name
}

output "bucket" {
  description = "Bucket of extents and staged writes."
  value       = module.store.bucket
}

output "catalog" {
  description = "Instance of the catalog."
  value       = module.catalog.identifier
}

output "roles" {
  description = "ECS service and IAM role of each role."
  value       = { for role, servers in module.role : role => { service = servers.service, iam_role = servers.task_role_arn } }
}

output "reader_role" {
  description = "IAM role by which other engines read tables; null without reader_principals."
  value       = module.store.reader_role_arn
}

output "secrets" {
  description = "Where the secrets are; their values are in no output."
  value       = module.secrets.arns
}

output "worker_token_secrets" {
  description = "Where the worker token of each sandbox node belongs."
  value       = local.has_nodes ? module.sandbox_nodes[0].token_secrets : {}
}

output "metrics" {
  description = "Where Grafana asks for metrics; null without monitoring."
  value       = one(module.monitoring[*].query_endpoint)
}
