import { readFileSync } from "node:fs";
import type { ConnectionOptions as TlsOptions } from "node:tls";
import { messageOf, StartupError } from "../../core/errors.ts";

/** Where the catalog's server is and how to speak to it, as its URL says. */
export type ServerAddress = {
  /** A host, or the folder of a Unix socket (it starts with a slash). */
  host: string;
  port: number;
  database: string;
  user: string;
  /** Undefined: `PGPASSWORD`, else none. */
  password: string | undefined;
  tls: TlsMode;
  applicationName: string;
};

/** `off`; `prefer` takes TLS when the server has it; `options` insists, with the checks that they ask for. */
export type TlsMode = { kind: "off" } | { kind: "prefer" } | { kind: "options"; options: TlsOptions };

const DEFAULT_PORT = 5432;
const SSL_MODES = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] as const;
type SslMode = (typeof SSL_MODES)[number];

const PARAMETERS = ["sslmode", "sslrootcert", "sslcert", "sslkey", "application_name", "host"] as const;
type Parameter = (typeof PARAMETERS)[number];

/**
 * Reads `postgres://USER:PASSWORD@HOST:PORT/DATABASE?…`. Parameters mean what they mean to libpq: `sslmode` (`prefer`
 * unless given; `require` encrypts without looking at the certificate, unless `sslrootcert` is given), `sslrootcert`,
 * `sslcert` and `sslkey` (files), `application_name`, and `host` for the folder of a Unix socket. Throws `StartupError`
 * (exit code 2) for anything else, without the password.
 */
export function parsePostgresUrl(text: string): ServerAddress {
  const url = URL.parse(text);
  if (url === null) throw badUrl("it is no URL");
  const parameters = parametersOf(url);
  const host = parameters.get("host") ?? decoded(url.hostname.replace(/^\[(.*)\]$/, "$1"));
  const database = decoded(url.pathname.slice(1));
  const user = decoded(url.username) || (process.env["PGUSER"] ?? "");
  if (host === "") throw badUrl("it names no host");
  if (database === "") throw badUrl("it names no database");
  if (user === "") throw badUrl("it names no user");
  return {
    host,
    port: url.port === "" ? DEFAULT_PORT : Number(url.port),
    database,
    user,
    password: url.password === "" ? process.env["PGPASSWORD"] : decoded(url.password),
    tls: host.startsWith("/") ? { kind: "off" } : tlsOf(parameters),
    applicationName: parameters.get("application_name") ?? "engine",
  };
}

/** The server and database in a sentence: nothing secret. */
export function showAddress({ host, port, database }: ServerAddress): string {
  return host.startsWith("/") ? `${database} on ${host}` : `${database} on ${host}:${port}`;
}

function badUrl(problem: string): StartupError {
  return new StartupError(`ENGINE_CATALOG_URL is not accepted: ${problem}`, 2);
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw badUrl("a percent sign in it begins no escape; write %25");
  }
}

function parametersOf(url: URL): Map<Parameter, string> {
  const found = new Map<Parameter, string>();
  for (const [name, value] of url.searchParams) {
    const known = PARAMETERS.find((parameter) => parameter === name);
    if (known === undefined) {
      throw badUrl(`it has the unknown parameter ${JSON.stringify(name)}; known are ${PARAMETERS.join(", ")}`);
    }
    found.set(known, value);
  }
  return found;
}

function tlsOf(parameters: ReadonlyMap<Parameter, string>): TlsMode {
  const given = parameters.get("sslmode") ?? "prefer";
  const mode = SSL_MODES.find((known) => known === given);
  if (mode === undefined) {
    throw badUrl(`sslmode is ${JSON.stringify(given)}; expected one of ${SSL_MODES.join(", ")}`);
  }
  if (mode === "disable") return { kind: "off" };
  const files = {
    ...fileOption("ca", parameters.get("sslrootcert")),
    ...fileOption("cert", parameters.get("sslcert")),
    ...fileOption("key", parameters.get("sslkey")),
  };
  if ((mode === "prefer" || mode === "allow") && Object.keys(files).length === 0) return { kind: "prefer" };
  return { kind: "options", options: { ...files, ...checksOf(mode, "ca" in files) } };
}

/** What is looked at in the server's certificate. */
function checksOf(mode: SslMode, hasRoot: boolean): TlsOptions {
  if (mode === "verify-full") return {};
  // As libpq: with root certificates at hand, `require` checks the chain as `verify-ca` does, but not the host's name.
  if (mode === "verify-ca" || hasRoot) return { checkServerIdentity: () => undefined };
  return { rejectUnauthorized: false };
}

function fileOption(name: "ca" | "cert" | "key", file: string | undefined): TlsOptions {
  if (file === undefined) return {};
  // libpq's word for the certificates that the system trusts, which are the default here.
  if (name === "ca" && file === "system") return {};
  try {
    return { [name]: readFileSync(file) };
  } catch (error) {
    throw badUrl(`${file} cannot be read: ${messageOf(error)}`);
  }
}
