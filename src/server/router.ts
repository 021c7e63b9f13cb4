import { EngineError } from "../core/errors.ts";
import type { Route } from "./route.ts";

/**
 * Finds the row for a request. Literal segments win over parameters, and those over `{*name}` at the end of a path, which
 * takes all that is left (at least one character) as it was sent: a handler that knows what its `/` and `%` mean decodes
 * it. `HEAD` is answered by the `GET` row; `OPTIONS` by
 * the caller, from `methods`.
 */
export type Match = { route: Route; params: Record<string, string> };

type Node = { literals: Map<string, Node>; parameter?: Node; rest?: Node; rows: Map<string, CompiledRow> };
type CompiledRow = { route: Route; names: string[]; restName?: string };
type Found = { node: Node; values: string[]; rest?: string };

export class Router {
  readonly #root: Node = newNode();

  constructor(routes: readonly Route[]) {
    for (const route of routes) this.#add(route);
  }

  /** Throws `not_found` or `method_not_allowed`. */
  match(method: string, path: string): Match {
    const found = this.#find(path);
    const row = found?.node.rows.get(method === "HEAD" ? "GET" : method);
    if (found !== undefined && row !== undefined) {
      const params = nameParams(row.names, found.values);
      if (row.restName !== undefined) params[row.restName] = found.rest ?? "";
      return { route: row.route, params };
    }
    const methods = this.methods(path);
    if (methods.length === 0) throw new EngineError("not_found", `there is no route ${path}`);
    throw new EngineError("method_not_allowed", `${path} takes ${methods.join(", ")}, not ${method}`, {
      headers: { Allow: methods.join(", ") },
    });
  }

  routesAt(path: string): Route[] {
    return [...(this.#find(path)?.node.rows.values() ?? [])].map(({ route }) => route);
  }

  /** The methods that a path takes; empty when there is no such path. */
  methods(path: string): string[] {
    const rows = this.#find(path)?.node.rows;
    if (rows === undefined || rows.size === 0) return [];
    const methods = [...rows.keys()];
    if (rows.has("GET")) methods.push("HEAD");
    return [...methods, "OPTIONS"];
  }

  #add(route: Route): void {
    let node = this.#root;
    const names: string[] = [];
    const { path, rest: restName } = /^(?<path>.*?)(?:\/\{\*(?<rest>\w+)\})?$/.exec(route.path)?.groups ?? {};
    for (const segment of (path ?? "").slice(1).split("/")) {
      const name = /^\{(\w+)\}$/.exec(segment)?.[1];
      if (name === undefined) node = literalChild(node, segment);
      else {
        names.push(name);
        node = node.parameter ??= newNode();
      }
    }
    if (restName !== undefined) node = node.rest ??= newNode();
    if (node.rows.has(route.method)) throw new Error(`two rows for ${route.method} ${route.path}`);
    node.rows.set(route.method, { route, names, ...(restName === undefined ? {} : { restName }) });
  }

  #find(path: string): Found | undefined {
    let node: Node | undefined = this.#root;
    const values: string[] = [];
    let taking: Found | undefined;
    let at = 1;
    for (const segment of path.slice(1).split("/")) {
      // The last one that is passed is the closest.
      if (node.rest !== undefined && at < path.length) {
        taking = { node: node.rest, values: [...values], rest: path.slice(at) };
      }
      at += segment.length + 1;
      const literal: Node | undefined = node.literals.get(segment);
      if (literal === undefined && node.parameter !== undefined && segment !== "") values.push(segment);
      node = literal ?? (segment === "" ? undefined : node.parameter);
      if (node === undefined) return taking;
    }
    return node.rows.size === 0 && taking !== undefined ? taking : { node, values };
  }
}

function newNode(): Node {
  return { literals: new Map(), rows: new Map() };
}

function literalChild(node: Node, segment: string): Node {
  const known = node.literals.get(segment);
  if (known !== undefined) return known;
  const child = newNode();
  node.literals.set(segment, child);
  return child;
}

function nameParams(names: string[], values: string[]): Record<string, string> {
  const params: Record<string, string> = {};
  names.forEach((name, i) => {
    try {
      params[name] = decodeURIComponent(values[i] ?? "");
    } catch {
      throw new EngineError("invalid_parameter", `path parameter ${name} is not valid percent-encoding`);
    }
  });
  return params;
}
