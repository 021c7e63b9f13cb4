# The bucket with extents and staged writes, and the rights on it: those of the servers, which are the ones of
# docs/operations.md, and those of other engines that read the tables in place.

locals {
  arn = "arn:${var.partition}:s3:::${var.bucket}"
  # The one text of these rights: `test/docs` compares the document with it, and runs the engine under it.
  server_policy = jsonencode(jsondecode(templatefile("${path.module}/server-policy.json", { bucket_arn = local.arn, prefix = var.prefix })))
}

resource "aws_s3_bucket" "this" {
  # checkov:skip=CKV_AWS_144: a copy in another region is the job of `engine backup`, which takes the catalog along
  # checkov:skip=CKV_AWS_18: every access is by the servers' own roles; CloudTrail's data events show it where wanted
  # checkov:skip=CKV_AWS_145: encrypted with S3's own keys; the engine was not tested with keys of KMS
  # checkov:skip=CKV2_AWS_62: nothing listens to events of single extents
  bucket        = var.bucket
  force_destroy = var.force_destroy
}

resource "aws_s3_bucket_public_access_block" "this" {
  bucket                  = aws_s3_bucket.this.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "this" {
  bucket = aws_s3_bucket.this.id
  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "this" {
  bucket = aws_s3_bucket.this.id
  rule {
    apply_server_side_encryption_by_default {
      sse_algorithm = "AES256"
    }
  }
}

resource "aws_s3_bucket_versioning" "this" {
  bucket = aws_s3_bucket.this.id
  versioning_configuration {
    status = "Enabled"
  }
}

# No rule may expire or move current objects: the catalog alone knows which of them are in use.
resource "aws_s3_bucket_lifecycle_configuration" "this" {
  bucket = aws_s3_bucket.this.id
  rule {
    id     = "abort-uploads"
    status = "Enabled"
    filter {}
    abort_incomplete_multipart_upload {
      days_after_initiation = 3
    }
  }
  rule {
    id     = "forget-deleted"
    status = "Enabled"
    filter {}
    noncurrent_version_expiration {
      noncurrent_days = var.deleted_days
    }
    expiration {
      expired_object_delete_marker = true
    }
  }
  depends_on = [aws_s3_bucket_versioning.this]
}

resource "aws_s3_bucket_policy" "this" {
  bucket = aws_s3_bucket.this.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      # A refusal for everybody and everything that comes without TLS: here a wildcard takes rights away.
      Sid       = "RefusePlainHttp"
      Effect    = "Deny"
      Principal = "*"
      Action    = "s3:*"
      Resource  = [local.arn, "${local.arn}/*"]
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })
  depends_on = [aws_s3_bucket_public_access_block.this]
}

# Other engines (Spark, Trino, DuckDB) that read tables in place.
resource "aws_iam_role" "reader" {
  count = length(var.reader_principals) > 0 ? 1 : 0
  name  = "${var.name}-reader"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { AWS = var.reader_principals }
    }]
  })
}

resource "aws_iam_role_policy" "reader" {
  count = length(var.reader_principals) > 0 ? 1 : 0
  name  = "read-extents"
  role  = aws_iam_role.reader[0].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "ListUnderPrefix"
        Effect    = "Allow"
        Action    = "s3:ListBucket"
        Resource  = local.arn
        Condition = { StringLike = { "s3:prefix" = "${var.prefix}/*" } }
      },
      {
        Sid      = "ReadUnderPrefix"
        Effect   = "Allow"
        Action   = "s3:GetObject"
        Resource = "${local.arn}/${var.prefix}/*"
      },
    ]
  })
}
