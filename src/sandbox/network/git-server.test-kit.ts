import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { dirname, join } from "node:path";
import { listen } from "./egress/proxy.test-kit.ts";

/** A server of repositories by git's own smart HTTP, on loopback. */
export type GitServer = {
  port: number;
  /** Paths that were asked for. */
  asked: string[];
  /** So many of the next requests are answered so. */
  refuse: { count: number; status: number };
  /** What answers wait for. */
  gate: { open: Promise<void> };
  close(): void;
};

export type GitServerOptions = {
  /** Whom it lets read and push; undefined: everybody reads. */
  authorization?: string;
  tls?: { cert: Buffer; key: Buffer };
};

/** Serves the repositories of a folder. */
export async function startGitServer(
  folder: string,
  { authorization, tls }: GitServerOptions = {},
): Promise<GitServer> {
  const refuse = { count: 0, status: 503 };
  const gate = { open: Promise.resolve() };
  const asked: string[] = [];
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    asked.push(request.url ?? "");
    if (authorization !== undefined && request.headers.authorization !== authorization) {
      response.writeHead(401, { "WWW-Authenticate": "Basic" }).end();
      return;
    }
    if (refuse.count > 0) {
      refuse.count--;
      response.writeHead(refuse.status).end();
      return;
    }
    void gate.open.then(() =>
      runBackend(folder, request, response, authorization === undefined ? undefined : "someone"),
    );
  };
  const server = tls === undefined ? createServer(handle) : createTlsServer(tls, handle);
  const port = await listen(server);
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { port, asked, refuse, gate, close };
}

/** `git http-backend` is a program of CGI (RFC 3875). */
function runBackend(
  folder: string,
  request: IncomingMessage,
  response: ServerResponse,
  user: string | undefined,
): void {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://git");
  const backend = spawn("git", ["http-backend"], {
    env: {
      PATH: process.env["PATH"] ?? "",
      GIT_PROJECT_ROOT: folder,
      GIT_HTTP_EXPORT_ALL: "1",
      GIT_PROTOCOL: String(request.headers["git-protocol"] ?? ""),
      REQUEST_METHOD: request.method ?? "GET",
      PATH_INFO: pathname,
      QUERY_STRING: searchParams.toString(),
      CONTENT_TYPE: request.headers["content-type"] ?? "",
      // Whom it knows, it lets push.
      ...(user !== undefined && { REMOTE_USER: user }),
      HTTP_CONTENT_ENCODING: request.headers["content-encoding"] ?? "",
    },
    stdio: ["pipe", "pipe", "ignore"],
  });
  request.pipe(backend.stdin);
  backend.stdin.on("error", () => undefined);
  const pieces: Buffer[] = [];
  backend.stdout.on("data", (piece: Buffer) => pieces.push(piece));
  backend.once("close", () => {
    const whole = Buffer.concat(pieces);
    const end = whole.indexOf("\r\n\r\n");
    const fields = whole
      .subarray(0, end)
      .toString("latin1")
      .split("\r\n")
      .map((line) => /^([^:]+):\s*(.*)$/.exec(line) ?? []);
    const status = fields.find(([, name]) => name === "Status")?.[2];
    for (const [, name, value] of fields)
      if (name !== undefined && name !== "Status") response.setHeader(name, value ?? "");
    response.writeHead(Number(status?.slice(0, 3) ?? 200)).end(whole.subarray(end + 4));
  });
}

export type TestRepository = { first: string; second: string; third: string };

/**
 * A bare repository: `main` has three commits, `side` the first alone, the tag `v1` is the second, and there are a tag
 * and a branch `both`. Files: `file`, of which each commit has another line; those of `more`; hooks that would be run;
 * a submodule, and a filter that would be run for `file`.
 */
export function makeRepository(
  path: string,
  more: Readonly<Record<string, string | { link: string }>> = {},
): TestRepository {
  const work = `${path}.work`;
  mkdirSync(work, { recursive: true });
  const git = (...args: string[]): string =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", ...args], {
      cwd: work,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    }).trim();
  git("init", "-q", "-b", "main");
  const commit = (line: string): string => {
    writeFileSync(join(work, "file"), `${line}\n`);
    git("add", "-A");
    git("commit", "-q", "-m", line);
    return git("rev-parse", "HEAD");
  };
  writeFileSync(join(work, ".gitattributes"), "file filter=evil\n");
  writeFileSync(join(work, ".gitmodules"), '[submodule "s"]\n\tpath = s\n\turl = ../submodule.git\n');
  for (const [name, content] of Object.entries(more)) {
    mkdirSync(dirname(join(work, name)), { recursive: true });
    if (typeof content === "string") writeFileSync(join(work, name), content, { mode: 0o755 });
    else symlinkSync(content.link, join(work, name));
  }
  const first = commit("one");
  git("branch", "side");
  const second = commit("two");
  git("tag", "-a", "-m", "v1", "v1");
  git("tag", "both");
  const third = commit("three");
  git("branch", "both");
  execFileSync("git", ["clone", "-q", "--bare", work, path], { stdio: "ignore" });
  return { first, second, third };
}
