import { StartupError } from "../src/core/errors.ts";
import { optionOf } from "../src/config/options.ts";
import type { HttpServer } from "../src/io/http/http.ts";
import { readTlsPair, type TlsPair } from "../src/io/http/tls.ts";
import { TlsWatch } from "../src/io/http/tls-watch.ts";
import type { Parts } from "./parts.ts";

/** The certificate of the configuration; undefined for plain HTTP. Throws a `StartupError` for one that is of no use. */
export function tlsPairOf({ config, origins }: Parts): TlsPair | undefined {
  const { tlsCert: certPath, tlsKey: keyPath } = config;
  if (certPath === undefined && keyPath === undefined) return undefined;
  if (certPath !== undefined && keyPath !== undefined) return readTlsPair({ certPath, keyPath });
  const [set, missing] = certPath === undefined ? (["tlsKey", "tlsCert"] as const) : (["tlsCert", "tlsKey"] as const);
  const why = "a certificate and its key go together";
  throw new StartupError(`${origins[set]} is set, and ${optionOf(missing).env} is not: ${why}`, 2);
}

/** Follows the files, and shows when what is served expires. */
export function watchTls({ clock, log, metrics }: Parts, server: HttpServer, first: TlsPair): TlsWatch {
  let serving = first;
  metrics.tlsCertificateExpiry.watch({}, () => serving.expiresAtMs / 1_000);
  if (first.expiresAtMs < clock.nowMs()) {
    const expiredAt = new Date(first.expiresAtMs).toISOString();
    log.warn({ certPath: first.files.certPath, expiredAt }, "the TLS certificate has expired: clients will refuse it");
  }
  const use = (pair: TlsPair): void => {
    server.useTlsPair(pair);
    serving = pair;
  };
  return new TlsWatch({ clock, log, pair: first, use });
}
