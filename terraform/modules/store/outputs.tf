output "bucket" {
  description = "Name of the bucket."
  value       = aws_s3_bucket.this.id
}

output "server_policy" {
  description = "What servers may do with the bucket, as a policy document."
  value       = local.server_policy
}

output "reader_role_arn" {
  description = "Role by which other engines read; null without principals."
  value       = one(aws_iam_role.reader[*].arn)
}
