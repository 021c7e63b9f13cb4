output "vpc_id" {
  description = "The network."
  value       = aws_vpc.this.id
}

output "cidr" {
  description = "Addresses of the network."
  value       = aws_vpc.this.cidr_block
}

output "public_subnets" {
  description = "Subnets of balancers."
  value       = aws_subnet.public[*].id
}

output "private_subnets" {
  description = "Subnets of servers, the catalog and sandbox nodes."
  value       = aws_subnet.private[*].id
}

output "namespace_id" {
  description = "Namespace of service discovery."
  value       = aws_service_discovery_private_dns_namespace.this.id
}

output "namespace" {
  description = "Domain under which each role has a name."
  value       = aws_service_discovery_private_dns_namespace.this.name
}
