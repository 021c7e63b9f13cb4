/** Cases of KQL that were derived by hand from the public reference of the language, by what they are about. */
export type KqlCases = Readonly<Record<string, readonly KqlCase[]>>;

export type KqlCase = Answered | Refused;

type Answered = {
  query: string;
  /** The rows as NDJSON has them: a `long` beyond 2^53 is a bigint. */
  rows: readonly Readonly<Record<string, KqlValue>>[];
  /** The names and KQL types of the columns, in order. */
  types?: Readonly<Record<string, string>>;
  /** The language gives the rows in no order. */
  unordered?: true;
};

type Refused = {
  query: string;
  refused: {
    code: "parse_error" | "invalid_query" | "execution_error" | "query_failed" | "budget_exceeded";
    /** A part of the message. */
    message: string;
    line?: number;
    column?: number;
  };
};

export type KqlValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | readonly KqlValue[]
  | { readonly [member: string]: KqlValue };
