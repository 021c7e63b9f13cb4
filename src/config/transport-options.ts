import * as kinds from "./kinds.ts";
import { option, optional } from "./option.ts";
import * as transportKinds from "./transport-kinds.ts";

/** Rows of the table of options: how a server is reached, and by whom. */
export const TRANSPORT_OPTIONS = {
  tlsCert: optional({
    env: "ENGINE_TLS_CERT",
    toml: "server.tls_cert",
    kind: kinds.path,
    whenUnset: "the server speaks plain HTTP",
    side: "S",
    doc:
      "File (PEM) with the certificate of the server and those that signed it, the server's first. With it and its key the " +
      "server speaks HTTPS and nothing else. A renewed certificate is taken within seconds, without a restart.",
  }),
  tlsKey: optional({
    env: "ENGINE_TLS_KEY",
    toml: "server.tls_key",
    kind: kinds.path,
    whenUnset: "the server speaks plain HTTP",
    side: "S",
    doc: "File (PEM) with the private key of that certificate, without a passphrase.",
  }),
  corsAllowedOrigins: optional({
    env: "ENGINE_CORS_ALLOWED_ORIGINS",
    toml: "server.cors_allowed_origins",
    kind: kinds.origins,
    whenUnset: "none while authentication is off, else every origin",
    side: "S",
    doc:
      "Origins whose pages may call the API, or `*` for all; an array in TOML, separated by commas elsewhere. While " +
      "authentication is off, requests of all other pages are refused.",
  }),
  httpAllowedHosts: option({
    env: "ENGINE_HTTP_ALLOWED_HOSTS",
    toml: "server.allowed_hosts",
    kind: transportKinds.hostNames,
    default: [],
    side: "S",
    doc:
      "Names under which clients reach the server while authentication is off, besides `localhost`, the name of the " +
      "machine, and the hosts of ENGINE_CORS_ALLOWED_ORIGINS and ENGINE_OAUTH_REDIRECT_BASE; IP addresses need no name. " +
      "Requests for other names are refused.",
  }),
  trustedProxies: option({
    env: "ENGINE_TRUSTED_PROXIES",
    toml: "server.trusted_proxies",
    kind: transportKinds.networks,
    default: [],
    side: "S",
    doc:
      "Proxies and edges whose `X-Forwarded-For` is believed. Limits on failed sign-ins, and the audit log, then go by the " +
      "address of the client and not by that of the proxy.",
  }),
} as const;
