/** A token service as servers find it in the cloud, and what they ask it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { endsWithThisProcess } from "../../src/core/child-processes.test-kit.ts";
import { installedBy } from "../../src/core/gates.test-kit.ts";
import { eventually, freePort } from "../../src/core/waiting.test-kit.ts";
import { cleanEnv } from "../support/engine.ts";

/** The program of moto's server; undefined where it cannot be installed, which is an error in CI. */
export function findMoto(): string | undefined {
  const program = installedBy("install-moto", "python3-venv");
  if (program === undefined && process.env["CI"] === "true") throw new Error("moto is missing");
  return program;
}

export type Moto = { endpoint: string; stop(): Promise<void> };

export async function startMoto(program: string): Promise<Moto> {
  const port = await freePort();
  const args = ["-H", "127.0.0.1", "-p", String(port)];
  const child = endsWithThisProcess(spawn(program, args, { env: cleanEnv(), stdio: "ignore" }));
  const endpoint = `http://127.0.0.1:${port}`;
  const closed = once(child, "close");
  const isReady = async () => (await fetch(`${endpoint}/moto-api/`)).ok;
  await eventually(() => isReady().catch(() => false));
  return {
    endpoint,
    async stop() {
      child.kill("SIGKILL");
      await closed;
    },
  };
}

/** A request for a session, by the names of its parameters, and who has signed it. */
export type Asked = { params: Record<string, string>; signedBy: string | undefined };

/** What is answered in the place of the service; undefined lets the service answer. */
export type Answer = (asked: Asked) => Promise<{ status: number; body: string } | undefined>;

export type TokenService = {
  endpoint: string;
  asked: Asked[];
  /** From now on. */
  answer: Answer;
  stop(): Promise<void>;
};

/** Notes what a token service is asked. */
export async function startTokenService(answer: Answer, moto?: Moto): Promise<TokenService> {
  const server = createServer((request, response) => void handle(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const service: TokenService = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: [],
    answer,
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
  return service;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    const signedBy = /Credential=([^/]+)\//.exec(request.headers.authorization ?? "")?.[1];
    const asked = { params: Object.fromEntries(new URLSearchParams(body)), signedBy };
    service.asked.push(asked);
    const said = (await service.answer(asked)) ?? (await passOn(request, body));
    response.writeHead(said.status, { "Content-Type": "text/xml" }).end(said.body);
  }

  async function passOn({ headers }: IncomingMessage, body: string) {
    const { authorization = "", "content-type": type = "" } = headers;
    const sent = { Authorization: authorization, "Content-Type": type };
    const answered = await fetch(moto?.endpoint ?? "", { method: "POST", body, headers: sent });
    return { status: answered.status, body: await answered.text() };
  }
}

/** What the service says when it does not do what it is asked. */
export function refusal(status: number, code: string): { status: number; body: string } {
  const error = `<Error><Type>Sender</Type><Code>${code}</Code><Message>not for arn:aws:iam::1:user/x</Message></Error>`;
  return { status, body: `<ErrorResponse>${error}<RequestId>r</RequestId></ErrorResponse>` };
}
