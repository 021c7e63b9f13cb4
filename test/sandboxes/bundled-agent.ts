import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** The scripted agent as one file that needs nothing beside it. */
export async function bundledAgent(): Promise<string> {
  const entry = fileURLToPath(new URL("acp-agent.ts", import.meta.url));
  const built = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    platform: "node",
    format: "esm",
  });
  return built.outputFiles[0]?.text ?? "";
}
