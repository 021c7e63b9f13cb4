import { PROXY_PORT } from "../../contract/spec.ts";

/** Where the certificate authorities that the operator added lie in a sandbox, with those that the image has. */
export const CA_BUNDLE = "/etc/ssl/certs/engine-ca-bundle.crt";
/** Those of the image, where Debian and its kin have them. */
export const SYSTEM_CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt";

/**
 * What tells programs in a sandbox to use its proxy. Both spellings: curl and git read `http_proxy` in lower case alone,
 * others only the upper case. Node.js uses a proxy of the environment when told to, from 22.21 and 24.5 on.
 */
export function proxyEnvironment(): Record<string, string> {
  const proxy = `http://127.0.0.1:${PROXY_PORT}`;
  const own = "localhost,127.0.0.1,::1";
  const upper = { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, ALL_PROXY: proxy, NO_PROXY: own };
  const lower = Object.fromEntries(Object.entries(upper).map(([name, value]) => [name.toLowerCase(), value]));
  return { ...upper, ...lower, NODE_USE_ENV_PROXY: "1" };
}

/** What has programs trust the operator's certificate authorities, each by the variable that it reads. */
export function certificateEnvironment(): Record<string, string> {
  const whole = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
  ];
  return {
    ...Object.fromEntries(whole.map((name) => [name, CA_BUNDLE])),
    // Node.js adds it to those that it has.
    NODE_EXTRA_CA_CERTS: CA_BUNDLE,
  };
}

/** A script that makes the bundle of what comes on its standard input; run as root of the sandbox. */
export const INSTALL_CERTIFICATES = `{ cat "${SYSTEM_CA_BUNDLE}" 2>/dev/null; cat; } > "${CA_BUNDLE}.new" && mv "${CA_BUNDLE}.new" "${CA_BUNDLE}"`;
