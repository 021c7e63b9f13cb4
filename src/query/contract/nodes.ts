/** The other servers that answer queries, and what they say when all are asked something. */
export interface OtherNodes {
  /** Of this server. */
  readonly self: { id: string; name: string };
  /** Asks each of them, a second at most. */
  ask(question: {
    method: "GET" | "DELETE";
    /** With its query. */
    path: string;
    headers: Readonly<Record<string, string>>;
    signal: AbortSignal;
  }): Promise<NodeAnswer[]>;
}

export type NodeAnswer = { id: string; name: string } & (
  | { kind: "answered"; status: number; text: string }
  | { kind: "silent"; reason: string }
);
