output "security_group" {
  description = "Security group of the agent."
  value       = aws_security_group.agent.id
}

output "query_endpoint" {
  description = "Where Grafana asks: deploy/grafana has the dashboard."
  value       = aws_prometheus_workspace.this.prometheus_endpoint
}

output "scrape_config" {
  description = "What the agent scrapes."
  value       = local.scrape_config
}
