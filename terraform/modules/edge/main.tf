# What clients reach: a balancer with TLS for HTTP, and by choice one for Arrow Flight (gRPC) within the network.

resource "aws_security_group" "this" {
  name        = "${var.name}-edge"
  description = "HTTPS from clients"
  vpc_id      = var.vpc_id
}

resource "aws_vpc_security_group_ingress_rule" "https" {
  for_each          = toset(var.allowed_cidrs)
  security_group_id = aws_security_group.this.id
  description       = "HTTPS"
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}

resource "aws_vpc_security_group_egress_rule" "servers" {
  security_group_id            = aws_security_group.this.id
  description                  = "To the servers"
  referenced_security_group_id = var.server_group
  ip_protocol                  = "tcp"
  from_port                    = 8080
  to_port                      = 8080
}

resource "aws_lb" "this" {
  # checkov:skip=CKV_AWS_91: the edges log each request themselves; `access_logs_bucket` adds the balancer's view
  # checkov:skip=CKV2_AWS_28: the engine limits, authenticates and bounds requests itself; a firewall is the operator's choice
  name                       = "${var.name}-edge"
  load_balancer_type         = "application"
  internal                   = var.internal
  subnets                    = var.subnets
  security_groups            = [aws_security_group.this.id]
  idle_timeout               = var.idle_timeout_secs
  enable_deletion_protection = var.deletion_protection
  # The engine reads requests strictly, and so does the balancer in front of it.
  drop_invalid_header_fields = true
  desync_mitigation_mode     = "strictest"
  enable_http2               = true
  dynamic "access_logs" {
    for_each = var.access_logs_bucket == null ? [] : [var.access_logs_bucket]
    content {
      bucket  = access_logs.value
      prefix  = var.name
      enabled = true
    }
  }
}

resource "aws_lb_target_group" "http" {
  # checkov:skip=CKV_AWS_378: TLS ends at the balancer; between it and the edges lies the deployment's own network
  name                 = "${var.name}-edge"
  vpc_id               = var.vpc_id
  target_type          = "ip"
  protocol             = "HTTP"
  port                 = 8080
  deregistration_delay = 60
  # A draining server says 503 for 5 s before it refuses anything.
  health_check {
    path                = "/health"
    matcher             = "200"
    interval            = 5
    timeout             = 4
    healthy_threshold   = 2
    unhealthy_threshold = 2
  }
}

resource "aws_lb_listener" "https" {
  load_balancer_arn = aws_lb.this.arn
  port              = 443
  protocol          = "HTTPS"
  ssl_policy        = "ELBSecurityPolicy-TLS13-1-2-2021-06"
  certificate_arn   = local.certificate_arn
  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.http.arn
  }
}

# The certificate and the name, where the zone of the domain is in Route 53.

locals {
  has_zone        = var.zone_id != null
  makes           = local.has_zone && var.certificate_arn == null
  certificate_arn = local.makes ? aws_acm_certificate_validation.this[0].certificate_arn : var.certificate_arn
}

resource "aws_acm_certificate" "this" {
  count             = local.makes ? 1 : 0
  domain_name       = var.domain
  validation_method = "DNS"
  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_route53_record" "validation" {
  count           = local.makes ? 1 : 0
  zone_id         = var.zone_id
  name            = one(aws_acm_certificate.this[0].domain_validation_options[*].resource_record_name)
  type            = one(aws_acm_certificate.this[0].domain_validation_options[*].resource_record_type)
  records         = aws_acm_certificate.this[0].domain_validation_options[*].resource_record_value
  ttl             = 300
  allow_overwrite = true
}

resource "aws_acm_certificate_validation" "this" {
  count                   = local.makes ? 1 : 0
  certificate_arn         = aws_acm_certificate.this[0].arn
  validation_record_fqdns = aws_route53_record.validation[*].fqdn
}

resource "aws_route53_record" "this" {
  count   = local.has_zone ? 1 : 0
  zone_id = var.zone_id
  name    = var.domain
  type    = "A"
  alias {
    name                   = aws_lb.this.dns_name
    zone_id                = aws_lb.this.zone_id
    evaluate_target_health = true
  }
}

# Arrow Flight has no authentication of its own: this balancer is internal, and takes connections from named networks.

resource "aws_security_group" "flight" {
  count       = var.flight ? 1 : 0
  name        = "${var.name}-flight"
  description = "Arrow Flight from named networks"
  vpc_id      = var.vpc_id
}

resource "aws_vpc_security_group_ingress_rule" "flight" {
  for_each          = toset(var.flight ? var.flight_cidrs : [])
  security_group_id = aws_security_group.flight[0].id
  description       = "Arrow Flight"
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}

resource "aws_vpc_security_group_egress_rule" "flight" {
  count                        = var.flight ? 1 : 0
  security_group_id            = aws_security_group.flight[0].id
  description                  = "To the query servers"
  referenced_security_group_id = var.server_group
  ip_protocol                  = "tcp"
  from_port                    = 9090
  to_port                      = 9090
}

resource "aws_lb" "flight" {
  # checkov:skip=CKV_AWS_91: it passes connections on; the servers log what is asked
  count                            = var.flight ? 1 : 0
  name                             = "${var.name}-flight"
  load_balancer_type               = "network"
  internal                         = true
  subnets                          = var.private_subnets
  security_groups                  = [aws_security_group.flight[0].id]
  enable_cross_zone_load_balancing = true
  enable_deletion_protection       = var.deletion_protection
}

resource "aws_lb_target_group" "flight" {
  count                = var.flight ? 1 : 0
  name                 = "${var.name}-flight"
  vpc_id               = var.vpc_id
  target_type          = "ip"
  protocol             = "TCP"
  port                 = 9090
  deregistration_delay = 60
  health_check {
    protocol = "HTTP"
    port     = "8080"
    path     = "/health"
    matcher  = "200"
    interval = 5
    timeout  = 4
  }
}

resource "aws_lb_listener" "flight" {
  count             = var.flight ? 1 : 0
  load_balancer_arn = aws_lb.flight[0].arn
  port              = 443
  protocol          = "TLS"
  ssl_policy        = "ELBSecurityPolicy-TLS13-1-2-2021-06"
  alpn_policy       = "HTTP2Only"
  certificate_arn   = local.certificate_arn
  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.flight[0].arn
  }
}
