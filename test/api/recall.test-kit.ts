import type { CalledServices, Json } from "./services.test-kit.ts";

export type Found = Json & { id: string; content: string; score: number; score_parts: Record<string, number> };
export type Recalled = {
  httpStatus: number;
  memories: Found[];
  entities: Found[];
  edges: Json[];
  as_of: string;
} & Json;

type Ask = (method: string, path: string, body?: unknown) => Promise<Json & { httpStatus: number }>;

/** The memory of one database, as one caller has it. */
export class Remembering {
  /** What is answered, whatever it is. */
  readonly ask: Ask;

  private constructor(ask: Ask) {
    this.ask = (method, path, body) => ask(method, `/v1/agent/memory/${path}`, body);
  }

  static of<Who extends string>(services: CalledServices<Who>, who: Who, database = "default"): Remembering {
    return new Remembering((method, path, body) => services.json(who, method, path, body, { "X-Database": database }));
  }

  /** Of a server that asks for no tokens. */
  static open(url: string, database = "default"): Remembering {
    return new Remembering(async (method, path, body) => {
      const headers = { "Content-Type": "application/json", "X-Database": database };
      const sent = body === undefined ? {} : { body: JSON.stringify(body) };
      const answer = await fetch(url + path, { method, headers, ...sent });
      return { ...((await answer.json()) as Json), httpStatus: answer.status };
    });
  }

  /** What must be answered well. */
  async done(method: string, path: string, body?: unknown): Promise<Json> {
    const answer = await this.ask(method, path, body);
    if (answer.httpStatus === 200) return answer;
    throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`);
  }

  async save(nodes: readonly (Json | string)[], edges: readonly Json[] = []): Promise<void> {
    const memory_nodes = nodes.map((node) => (typeof node === "string" ? { content: node } : node));
    await this.done("POST", "import", { memory_nodes, memory_edges: edges });
  }

  async recall(query: string, more: Json = {}): Promise<Recalled> {
    return (await this.done("POST", "query", { query, ...more })) as Recalled;
  }

  /** The texts that are found, the best first. */
  async texts(query: string, more: Json = {}): Promise<string[]> {
    return (await this.recall(query, more)).memories.map(({ content }) => content);
  }
}

/** Some character of every category that Unicode has, but for halves of others and NUL. */
export function everyCategory(): string {
  const categories = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co Cn".split(
    " ",
  );
  return categories.map(ofCategory).join("");
}

function ofCategory(name: string): string {
  const member = new RegExp(`^\\p{${name}}$`, "u");
  const found: string[] = [];
  for (let code = 1; code <= 0x10ffff && found.length < 3; code++) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    const text = String.fromCodePoint(code);
    if (member.test(text)) found.push(text);
  }
  return found.join("");
}
