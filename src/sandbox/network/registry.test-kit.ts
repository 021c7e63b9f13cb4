import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { listen } from "./egress/proxy.test-kit.ts";

/** A registry of npm with one package: `hello-tool` 1.0.0, whose program says `hello`. */
export async function startRegistry(folder: string): Promise<{ port: number; asked: string[]; close(): void }> {
  const content = join(folder, "package");
  mkdirSync(content, { recursive: true });
  const about = { name: "hello-tool", version: "1.0.0", bin: { "hello-tool": "hello.sh" } };
  writeFileSync(join(content, "package.json"), JSON.stringify(about));
  writeFileSync(join(content, "hello.sh"), "#!/bin/sh\necho hello\n", { mode: 0o755 });
  const file = join(folder, "hello-tool-1.0.0.tgz");
  execFileSync("tar", ["-czf", file, "-C", folder, "package"]);
  const bytes = readFileSync(file);
  const integrity = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    if (request.url?.endsWith(".tgz") === true) {
      response.end(bytes);
      return;
    }
    if (request.url !== "/hello-tool") {
      response.writeHead(404).end("{}");
      return;
    }
    const dist = { tarball: `http://${request.headers.host}/hello-tool/-/hello-tool-1.0.0.tgz`, integrity };
    const versions = { "1.0.0": { ...about, dist } };
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify({ name: about.name, "dist-tags": { latest: "1.0.0" }, versions }));
  });
  const port = await listen(server);
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { port, asked, close };
}
