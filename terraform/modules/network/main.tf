# The private network: 2 or 3 zones, servers in private subnets, balancers in public ones, S3 by a gateway endpoint,
# and names for the servers of each role.

data "aws_availability_zones" "open" {
  # checkov:skip=CKV_AWS_394: subnets that are there stay in their zones when AWS adds one
  state = "available"
  filter {
    name   = "opt-in-status"
    values = ["opt-in-not-required"]
  }
}

locals {
  zones        = slice(data.aws_availability_zones.open.names, 0, var.zone_count)
  nat_gateways = var.nat_per_zone ? var.zone_count : 1
  # /16 gives subnets of /20: 4,091 addresses each.
  public_cidrs  = [for i in range(var.zone_count) : cidrsubnet(var.cidr, 4, i)]
  private_cidrs = [for i in range(var.zone_count) : cidrsubnet(var.cidr, 4, 8 + i)]
}

resource "aws_vpc" "this" {
  cidr_block           = var.cidr
  enable_dns_support   = true
  enable_dns_hostnames = true
  tags                 = { Name = var.name }
}

# Nothing may use the group that a network has by itself.
resource "aws_default_security_group" "unused" {
  vpc_id = aws_vpc.this.id
}

resource "aws_subnet" "public" {
  count                   = var.zone_count
  vpc_id                  = aws_vpc.this.id
  availability_zone       = local.zones[count.index]
  cidr_block              = local.public_cidrs[count.index]
  map_public_ip_on_launch = false
  tags                    = { Name = "${var.name}-public-${count.index}" }
  lifecycle {
    ignore_changes = [availability_zone]
  }
}

resource "aws_subnet" "private" {
  count             = var.zone_count
  vpc_id            = aws_vpc.this.id
  availability_zone = local.zones[count.index]
  cidr_block        = local.private_cidrs[count.index]
  tags              = { Name = "${var.name}-private-${count.index}" }
  lifecycle {
    ignore_changes = [availability_zone]
  }
}

resource "aws_internet_gateway" "this" {
  vpc_id = aws_vpc.this.id
  tags   = { Name = var.name }
}

resource "aws_eip" "nat" {
  count  = local.nat_gateways
  domain = "vpc"
  tags   = { Name = "${var.name}-nat-${count.index}" }
}

resource "aws_nat_gateway" "this" {
  count         = local.nat_gateways
  allocation_id = aws_eip.nat[count.index].id
  subnet_id     = aws_subnet.public[count.index].id
  tags          = { Name = "${var.name}-${count.index}" }
  depends_on    = [aws_internet_gateway.this]
}

resource "aws_route_table" "public" {
  vpc_id = aws_vpc.this.id
  tags   = { Name = "${var.name}-public" }
}

resource "aws_route" "public" {
  route_table_id         = aws_route_table.public.id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.this.id
}

resource "aws_route_table_association" "public" {
  count          = var.zone_count
  subnet_id      = aws_subnet.public[count.index].id
  route_table_id = aws_route_table.public.id
}

resource "aws_route_table" "private" {
  count  = var.zone_count
  vpc_id = aws_vpc.this.id
  tags   = { Name = "${var.name}-private-${count.index}" }
}

resource "aws_route" "private" {
  count                  = var.zone_count
  route_table_id         = aws_route_table.private[count.index].id
  destination_cidr_block = "0.0.0.0/0"
  nat_gateway_id         = aws_nat_gateway.this[var.nat_per_zone ? count.index : 0].id
}

resource "aws_route_table_association" "private" {
  count          = var.zone_count
  subnet_id      = aws_subnet.private[count.index].id
  route_table_id = aws_route_table.private[count.index].id
}

# Extents do not pass (and pay for) the NAT gateway.
resource "aws_vpc_endpoint" "s3" {
  vpc_id            = aws_vpc.this.id
  service_name      = "com.amazonaws.${var.region}.s3"
  vpc_endpoint_type = "Gateway"
  route_table_ids   = aws_route_table.private[*].id
  tags              = { Name = "${var.name}-s3" }
}

# `query.<name>.internal` has an address for each query server: edges take each as a peer.
resource "aws_service_discovery_private_dns_namespace" "this" {
  name = "${var.name}.internal"
  vpc  = aws_vpc.this.id
}

# Who spoke to whom: connections only, not what was said.
resource "aws_cloudwatch_log_group" "flows" {
  # checkov:skip=CKV_AWS_158: CloudWatch encrypts logs with a key of its own; a customer key adds a way to lose them
  # checkov:skip=CKV_AWS_338: addresses of connections are personal data, and are not kept for a year
  name              = "/engine/${var.name}/flows"
  retention_in_days = var.log_days
}

resource "aws_flow_log" "this" {
  vpc_id          = aws_vpc.this.id
  traffic_type    = "ALL"
  log_destination = aws_cloudwatch_log_group.flows.arn
  iam_role_arn    = aws_iam_role.flows.arn
}

resource "aws_iam_role" "flows" {
  name = "${var.name}-flows"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "vpc-flow-logs.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "flows" {
  role = aws_iam_role.flows.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      # The streams of this one group: their names are made by the service that writes them.
      Sid      = "StreamsOfOneGroup"
      Effect   = "Allow"
      Action   = ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"]
      Resource = "${aws_cloudwatch_log_group.flows.arn}:*"
    }]
  })
}
