import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { CliError } from "../../client/failure.ts";
import { messageOf, systemCodeOf } from "../../core/errors.ts";
import { visible } from "../../core/visible.ts";

/** Where releases are read from. Nothing of it is trusted: what comes is bounded, and checked by who asked. */
export type ReleaseSource = {
  readonly url: string;
  /** The bytes of a file as they come. @throws CliError */
  open(path: readonly string[]): AsyncIterable<Uint8Array>;
  close(): Promise<void>;
};

const TIMEOUT_MS = 60_000;
const MAX_REDIRECTS = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

type SourceOptions = {
  userAgent: string;
  /** HTTP_PROXY, HTTPS_PROXY and NO_PROXY, in capitals or not. */
  env: Readonly<Record<string, string | undefined>>;
};

/** @param url of `http`, `https` or `file`, without a slash at its end */
export async function openSource(url: string, options: SourceOptions): Promise<ReleaseSource> {
  return url.startsWith("file:") ? folderSource(url) : await webSource(url, options);
}

/** A file that is not longer than it may be. @throws CliError */
export async function readWhole(source: ReleaseSource, path: readonly string[], maxBytes: number): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const piece of source.open(path)) {
    pieces.push(piece);
    sizeBytes += piece.byteLength;
    if (sizeBytes > maxBytes) throw new CliError(`${urlOf(source.url, path)} is longer than ${maxBytes} bytes`);
  }
  return Buffer.concat(pieces);
}

/** The names are those of a release, or ours: they hold nothing that means something in an address. */
function urlOf(base: string, path: readonly string[]): string {
  return [base, ...path.map(encodeURIComponent)].join("/");
}

function folderSource(base: string): ReleaseSource {
  return {
    url: base,
    async *open(path) {
      const file = fileURLToPath(urlOf(base, path));
      try {
        if (!(await stat(file)).isFile()) throw new CliError(`${file} is not a file`);
        yield* createReadStream(file) as AsyncIterable<Buffer>;
      } catch (error) {
        if (error instanceof CliError) throw error;
        const what = systemCodeOf(error) === "ENOENT" ? `there is no ${file}` : messageOf(error);
        throw new CliError(`${what}: put the release there, or set ENGINE_UPDATE_URL to where it is`, 1, {
          cause: error,
        });
      }
    },
    close: () => Promise.resolve(),
  };
}

async function webSource(base: string, { userAgent, env }: SourceOptions): Promise<ReleaseSource> {
  const { EnvHttpProxyAgent, request } = await import("undici");
  const of = (name: string) => env[name.toLowerCase()] || env[name] || undefined;
  const [httpProxy, httpsProxy, noProxy] = [of("HTTP_PROXY"), of("HTTPS_PROXY"), of("NO_PROXY")];
  // An empty text keeps it from the variables of the process.
  const agent = new EnvHttpProxyAgent({
    httpProxy: httpProxy ?? "",
    httpsProxy: httpsProxy ?? "",
    noProxy: noProxy ?? "",
    connect: { timeout: TIMEOUT_MS },
  });
  const headers = { "user-agent": userAgent, "accept-encoding": "identity" };
  const get = (url: string) =>
    request(url, { dispatcher: agent, headers, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });
  return {
    url: base,
    async *open(path) {
      let url = urlOf(base, path);
      try {
        for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
          const { statusCode, headers: answered, body } = await get(url);
          if (statusCode === 200) {
            yield* body as AsyncIterable<Uint8Array>;
            return;
          }
          body.on("error", () => undefined).destroy();
          if (!REDIRECTS.has(statusCode)) throw new CliError(`${url} answers ${statusCode}: ${remedyFor(statusCode)}`);
          url = redirected(url, answered["location"]);
        }
        throw new CliError(`${base} redirects more than ${MAX_REDIRECTS} times`);
      } catch (error) {
        if (error instanceof CliError) throw error;
        const reason = visible(messageOf(error)) || systemCodeOf(error) || "no connection";
        throw new CliError(
          `cannot read ${visible(url)}: ${reason}; try again, or set ENGINE_UPDATE_URL to a mirror`,
          1,
          {
            cause: error,
          },
        );
      }
    },
    close: () => agent.destroy(),
  };
}

function remedyFor(status: number): string {
  if (status === 404) return "there is no such release";
  return status >= 500 ? "try again later" : "check ENGINE_UPDATE_URL";
}

/** Never from TLS to none, and never to anything but a server. @throws CliError */
function redirected(from: string, location: string | string[] | undefined): string {
  const to = typeof location === "string" ? URL.parse(location, from) : null;
  const isKept = to?.protocol === "https:" || (to?.protocol === "http:" && from.startsWith("http:"));
  if (to !== null && isKept) return to.href;
  const where = typeof location === "string" ? visible(location.slice(0, 200)) : "nowhere";
  throw new CliError(
    `${from} redirects to ${where}, which is not followed: set ENGINE_UPDATE_URL to an address by https`,
  );
}
