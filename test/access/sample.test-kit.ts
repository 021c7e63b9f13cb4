import { jsonRequest, type TestCaller, type TestRequest, type World } from "./world.test-kit.ts";

/** A request that a route takes, and what it answers to those who may send it. */
export type Sample = {
  /** Made anew after each call that was let in: it may have used up what the request is about. */
  request: (world: World) => TestRequest | Promise<TestRequest>;
  /** Undefined stands for anyone, of routes that ask for no role, and for the worker, of routes for workers. */
  answer: (caller: TestCaller | undefined) => number;
  /** Whoever was let in must sign in again. */
  endsSession?: true;
};

/** Of a route of one database, which is `a` here. */
export const inDatabaseA = (outside: number) => (caller: TestCaller | undefined) =>
  caller?.limit === "b" ? outside : 200;

export const isFullAdmin = (caller: TestCaller | undefined) => caller?.role === "admin" && caller.limit === "none";

let made = 0;
/** A name that nothing has yet. */
export function newName(): string {
  return `made-${++made}`;
}

const IN_A = { "x-database": "a" };

/** A request to the memory of the database `a`. */
export function inA(method: string, path: string, body?: unknown): TestRequest {
  const request = jsonRequest(method, path, body);
  return { ...request, headers: { ...request.headers, ...IN_A } };
}
