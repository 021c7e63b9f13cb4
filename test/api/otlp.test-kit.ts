import { spawn, spawnSync } from "node:child_process";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

/** A Python with the official packages; its `status` is 0 where there is one. */
export const installed = spawnSync(path("../../.ci/install-opentelemetry"), { encoding: "utf8", timeout: 600_000 });

if (installed.status !== 0) {
  if (process.env["CI"] === "true") throw new Error(`the OpenTelemetry SDK is not installed: ${installed.stderr}`);
  process.stderr.write(
    "skipped for lack of the OpenTelemetry SDK: apt-get install python3-venv, and run .ci/install-opentelemetry\n",
  );
}

type Input = Uint8Array | AsyncIterable<Uint8Array>;

/** Runs `otlp-client.py`; resolves to what it printed. */
export async function python(args: readonly string[], input: Input = Buffer.alloc(0)): Promise<Buffer> {
  const child = spawn(installed.stdout.trim(), [path("otlp-client.py"), ...args], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  const [out, err]: [Buffer[], Buffer[]] = [[], []];
  child.stdout.on("data", (piece: Buffer) => out.push(piece));
  child.stderr.on("data", (piece: Buffer) => err.push(piece));
  Readable.from(input instanceof Uint8Array ? [input] : input).pipe(child.stdin);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  const said = Buffer.concat(err).toString();
  if (code !== 0) throw new Error(`${args.join(" ")}: ${said}`);
  // Exporters only log what fails.
  if (/\b(?:error|failed)\b/i.test(said)) throw new Error(`${args.join(" ")}: ${said}`);
  return Buffer.concat(out);
}
