import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { CliError } from "../../client/failure.ts";
import type { Artefact } from "../release/manifest.ts";
import type { ReleaseSource } from "./source.ts";

/**
 * Downloads an artefact into a new file, which is durable once this resolves. It has the size and the hash that the
 * manifest says, or the file is to be thrown away. @throws CliError, or what the system says
 */
export async function download(
  source: ReleaseSource,
  { version, artefact }: { version: string; artefact: Artefact },
  file: string,
  mode: number,
): Promise<void> {
  const { name, size_bytes: expectedBytes, sha256 } = artefact;
  const hash = createHash("sha256");
  let sizeBytes = 0;
  const handle = await open(file, "wx", 0o600);
  try {
    for await (const piece of source.open([version, name])) {
      sizeBytes += piece.byteLength;
      if (sizeBytes > expectedBytes) throw damaged(source, name, `is longer than ${expectedBytes} bytes`);
      hash.update(piece);
      await handle.writeFile(piece);
    }
    if (sizeBytes < expectedBytes) throw damaged(source, name, `ends after ${sizeBytes} of ${expectedBytes} bytes`);
    if (hash.digest("hex") !== sha256) throw damaged(source, name, "is not what was signed");
    await handle.chmod(mode);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function damaged({ url }: ReleaseSource, name: string, how: string): CliError {
  return new CliError(`${name} of ${url} ${how}: try again, or set ENGINE_UPDATE_URL to another mirror`);
}
