/**
 * Requests as bytes, and what they are: either the same to everybody who reads them, or refused. Each is sent with
 * `FOLLOWING` behind it, in which nothing of the request may end up, and of which nothing may end up in the request.
 */
export type CorpusEntry = {
  name: string;
  bytes: Buffer;
  /** What is served: method, target and body, and the header `x` where there is one. Nothing of a refused request. */
  served: string[];
  /** Whether the connection serves `FOLLOWING`. */
  goesOn: boolean;
  /** Known to be read otherwise by uWebSockets.js; any other entry it reads alike, or refuses. */
  isLooseInUws: boolean;
};

export const FOLLOWING = "GET /following HTTP/1.1\r\nHost: a\r\n\r\n";
export const FOLLOWING_SERVED = "GET /following []";

export const corpus: CorpusEntry[] = [];

type Reading = { goesOn?: boolean; looseInUws?: boolean };

/** Characters are bytes. */
function served(
  name: string,
  latin1: string,
  reading: string,
  { goesOn = true, looseInUws = false }: Reading = {},
): void {
  const bytes = Buffer.from(latin1, "latin1");
  corpus.push({ name, bytes, served: [reading], goesOn, isLooseInUws: looseInUws });
}

function refused(name: string, latin1: string, { looseInUws = false }: Pick<Reading, "looseInUws"> = {}): void {
  corpus.push({ name, bytes: Buffer.from(latin1, "latin1"), served: [], goesOn: false, isLooseInUws: looseInUws });
}

const LOOSE = { looseInUws: true };
const LAST = { goesOn: false };

/** A head of these lines. */
const get = (...lines: string[]) => `GET /a HTTP/1.1\r\n${["Host: a", ...lines].join("\r\n")}\r\n\r\n`;
const post = (...lines: string[]) => get(...lines).replace("GET", "POST");
const target = (text: string) => `GET ${text} HTTP/1.1\r\nHost: a\r\n\r\n`;
const chunked = (body: string) => `${post("Transfer-Encoding: chunked")}${body}`;
const utf8 = (text: string) => Buffer.from(text).toString("latin1");

// Ends of lines.
refused("LF only", "GET /a HTTP/1.1\nHost: a\n\n");
refused("LF after the request line", "GET /a HTTP/1.1\nHost: a\r\n\r\n");
refused("LF after a header", "GET /a HTTP/1.1\r\nHost: a\nX: y\r\n\r\n");
refused("LF after the last header", "GET /a HTTP/1.1\r\nHost: a\r\nX: y\n\r\n");
refused("LF for the empty line", "GET /a HTTP/1.1\r\nHost: a\r\n\n");
refused("CR only", "GET /a HTTP/1.1\rHost: a\r\r");
refused("CR twice", get("X: y\r"));
refused("CR in a value", get("X: y\rz"));
served("empty lines before it", `\r\n\r\n${get()}`, "GET /a []");

// Versions.
served("HTTP/1.0", "GET /a HTTP/1.0\r\nHost: a\r\n\r\n", "GET /a []", LAST);
served("HTTP/1.0 without a host", "GET /a HTTP/1.0\r\n\r\n", "GET /a []", LAST);
served("HTTP/1.0 that keeps the connection", "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET /a []");
served("HTTP/1.0 with a body", "POST /a HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello", "POST /a [hello]", LAST);
served("HTTP/1.0 without a length", "POST /a HTTP/1.0\r\n\r\n", "POST /a []", LAST);
refused("HTTP/1.0 in chunks", "POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
refused("HTTP/0.9", "GET /a\r\n\r\n");
refused("HTTP/0.9 by name", "GET /a HTTP/0.9\r\nHost: a\r\n\r\n");
refused("HTTP/1.2", "GET /a HTTP/1.2\r\nHost: a\r\n\r\n");
refused("HTTP/2.0", "GET /a HTTP/2.0\r\nHost: a\r\n\r\n");
refused("HTTP/2 with prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
refused("another protocol", "GET /a ICE/1.0\r\nHost: a\r\n\r\n");
refused("a protocol in lower case", "GET /a http/1.1\r\nHost: a\r\n\r\n");
refused("a space after the version", "GET /a HTTP/1.1 \r\nHost: a\r\n\r\n");
refused("TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03");

// Methods.
refused("a method in lower case", get().replace("GET", "get"));
refused("CONNECT", "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n");
refused("a space before the method", ` ${get()}`);

// Targets.
served("a URL", target("http://a/b?q=1"), "GET /b?q=1 []");
served("a URL of another scheme's spelling", target("HTTPS://A/b"), "GET /b []");
served("a URL without a path", target("http://a"), "GET / []");
served("a URL with nothing but a query", target("http://a?q=1"), "GET /?q=1 []");
refused("a URL of another host", target("http://b/c"));
refused("a URL of another port", target("http://a:81/c"));
refused("a URL with a user", target("http://u@a/c"));
refused("a URL without a host", target("http:///c"));
refused("a URL of another protocol", target("ftp://a/c"));
refused("an authority", target("a:80"));
refused("a path without a slash", target("a"));
refused("an asterisk that is not for OPTIONS", target("*"));
served("an asterisk", target("*").replace("GET", "OPTIONS"), "OPTIONS * []");
served("two slashes", target("//b/c"), "GET //b/c []");
refused("a fragment", target("/a#b"));
refused("a space in the path", target("/a b"));
refused("a tab in the path", target("/a\tb"));
refused("a control character in the path", target("/a\x01b"));
refused("NUL in the path", target("/a\0b"));
refused("bytes outside of ASCII in the path", target(utf8("/é")), LOOSE);

// Hosts.
refused("no host", "GET /a HTTP/1.1\r\n\r\n");
refused("two hosts", get("Host: a"));
refused("two hosts in one", get().replace("Host: a", "Host: a, b"));
refused("a host with a path", get().replace("Host: a", "Host: a/b"));
refused("a host with a user", get().replace("Host: a", "Host: u@a"));
refused("a host with a space", get().replace("Host: a", "Host: a b"));
served("no name of a host", get().replace("Host: a", "Host:"), "GET /a []");
served("an address", get().replace("Host: a", "Host: [::1]:80"), "GET /a []");

// Headers.
served("an empty value", get("X:"), 'GET /a [] x=""');
served("blanks around a value", get("X: \t y \t"), 'GET /a [] x="y"');
served("a tab in a value", get("X: y\tz"), 'GET /a [] x="y\\tz"');
served("a header twice", get("X: y", "x: z"), 'GET /a [] x="y, z"');
served("UTF-8 in the middle", get(utf8("X: aéz")), 'GET /a [] x="aéz"');
served("UTF-8 at the ends", get(utf8("X: é-è")), 'GET /a [] x="é-è"', LOOSE);
served("a no-break space at the ends", get(utf8("X: \u00a0y\u00a0")), 'GET /a [] x="\u00a0y\u00a0"', LOOSE);
refused("Latin-1 in the middle", get("X: a\xe9z"), LOOSE);
refused("Latin-1 at the end", get("X: caf\xe9"), LOOSE);
refused("UTF-8 that is cut off", get("X: caf\xc3"), LOOSE);
refused("UTF-8 of more bytes than it needs", get("X: a\xc0\xafz"), LOOSE);
refused("NUL in a value", get("X: y\0z"));
refused("a control character in a value", get("X: y\x01z"));
refused("a vertical tab before a value", get("X: \x0by"));
refused("DEL in a value", get("X: y\x7fz"), LOOSE);
refused("a folded value", get("X: y", " z"));
refused("a value folded by a tab", get("X: y", "\tz"));
refused("a fold before the first header", "GET /a HTTP/1.1\r\n X: y\r\nHost: a\r\n\r\n");
refused("a space before the colon", get("X : y"));
refused("a tab before the colon", get("X\t: y"));
refused("no colon", get("X"));
refused("no name", get(": y"), LOOSE);
refused("NUL in a name", get("X\0: y"));
refused("bytes outside of ASCII in a name", get(utf8("Xé: y")));
refused("257 headers", get(...Array.from({ length: 256 }, () => "X: y")));

// Lengths.
served("a length", `${post("Content-Length: 5")}hello`, "POST /a [hello]");
served("a length of a GET", `${get("Content-Length: 5")}hello`, "GET /a [hello]");
served("a length with blanks around", `${post("Content-Length:\t5 ")}hello`, "POST /a [hello]");
served("a length with zeros before", `${post("Content-Length: 0000000005")}hello`, "POST /a [hello]");
served(
  "a length that the connection names",
  `${post("Connection: content-length", "Content-Length: 5")}hello`,
  "POST /a [hello]",
);
refused("the same length twice", `${post("Content-Length: 5", "Content-Length: 5")}hello`);
refused("two lengths", `${post("Content-Length: 5", "Content-Length: 6")}hello`);
refused("a list of lengths", `${post("Content-Length: 5, 5")}hello`);
refused("a length in two", `${post("Content-Length: 5 5")}hello`);
refused("no length in it", `${post("Content-Length:")}hello`);
refused("a length with a sign", `${post("Content-Length: +5")}hello`);
refused("a length below zero", `${post("Content-Length: -5")}hello`);
refused("a length in hexadecimal", `${post("Content-Length: 0x5")}hello`);
refused("a length with a fraction", `${post("Content-Length: 5.0")}hello`);
refused("a length beyond 2^64", `${post("Content-Length: 18446744073709551621")}hello`);
refused("a length with a byte behind it", `${post("Content-Length: 5\xff")}hello`, LOOSE);
refused("a length with a no-break space", `${post(utf8("Content-Length: 5\u00a0"))}hello`, LOOSE);
refused("a folded length", `${post("Content-Length:", " 5")}hello`);

// Codings.
refused("a length and chunks", `${post("Content-Length: 5", "Transfer-Encoding: chunked")}0\r\n\r\n`);
refused("chunks and a length", `${post("Transfer-Encoding: chunked", "Content-Length: 5")}0\r\n\r\n`);
refused("chunks, then as they are", `${post("Transfer-Encoding: chunked, identity")}0\r\n\r\n`);
refused("as they are", `${post("Transfer-Encoding: identity")}0\r\n\r\n`);
refused("another coding, then chunks", `${post("Transfer-Encoding: gzip, chunked")}0\r\n\r\n`);
refused("chunks twice", `${post("Transfer-Encoding: chunked, chunked")}0\r\n\r\n`);
refused("chunks in two headers", `${post("Transfer-Encoding: chunked", "Transfer-Encoding: chunked")}0\r\n\r\n`);
refused("an unknown coding", `${post("Transfer-Encoding: xchunked")}0\r\n\r\n`);
refused("no coding", `${post("Transfer-Encoding:")}0\r\n\r\n`);
refused("no coding and a length", `${post("Transfer-Encoding:", "Content-Length: 5")}hello`);
refused("a vertical tab before the coding", `${post("Transfer-Encoding: \x0bchunked")}0\r\n\r\n`);
refused("a byte behind the coding", `${post("Transfer-Encoding: chunked\xff")}0\r\n\r\n`, LOOSE);
refused("a byte before the coding", `${post("Transfer-Encoding: \xffchunked")}0\r\n\r\n`, LOOSE);
refused("a folded coding", `${post("Transfer-Encoding:", " chunked")}0\r\n\r\n`);
served("a coding in capitals", `${post("Transfer-Encoding: CHUNKED")}0\r\n\r\n`, "POST /a []");
served("chunks of a GET", `${get("Transfer-Encoding: chunked")}5\r\nhello\r\n0\r\n\r\n`, "GET /a [hello]");

// Chunks.
served("a chunk", chunked("5\r\nhello\r\n0\r\n\r\n"), "POST /a [hello]");
served("chunks", chunked("3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"), "POST /a [hello]");
served("a size with zeros before", chunked("0000000000000000000005\r\nhello\r\n000\r\n\r\n"), "POST /a [hello]");
served("a size in capitals", chunked("A\r\nhellohello\r\n0\r\n\r\n"), "POST /a [hellohello]");
served("an extension", chunked("5;a=b\r\nhello\r\n0;c\r\n\r\n"), "POST /a [hello]");
served("an extension in quotes", chunked('5;a="b;c"\r\nhello\r\n0\r\n\r\n'), "POST /a [hello]");
refused("an LF in an extension", chunked("5;a\nb\r\nhello\r\n0\r\n\r\n"));
refused("an extension of 20 KB", chunked(`5;${"a".repeat(20_000)}\r\nhello\r\n0\r\n\r\n`));
refused("two bytes for the end of a chunk", chunked("5\r\nhelloXX0\r\n\r\n"), LOOSE);
refused("LF for the end of a chunk", chunked("5\r\nhello\n0\r\n\r\n"), LOOSE);
refused("LF for the end of a size", chunked("5\nhello\r\n0\r\n\r\n"), LOOSE);
refused("LF in all of the body", chunked("5\nhello\n0\n\n"), LOOSE);
refused("a chunk that is longer than its size", chunked("5\r\nhello!\r\n0\r\n\r\n"), LOOSE);
refused("a size with a sign", chunked("+5\r\nhello\r\n0\r\n\r\n"));
refused("a size below zero", chunked("-5\r\nhello\r\n0\r\n\r\n"));
refused("a size with 0x", chunked("0x5\r\nhello\r\n0\r\n\r\n"));
refused("a size with a space before", chunked(" 5\r\nhello\r\n0\r\n\r\n"), LOOSE);
refused("a size with a space behind", chunked("5 \r\nhello\r\n0\r\n\r\n"), LOOSE);
refused("a size with a tab behind", chunked("5\t\r\nhello\r\n0\r\n\r\n"), LOOSE);
refused("a size with an underscore", chunked("0_5\r\nhello\r\n0\r\n\r\n"));
refused("no size", chunked("\r\nhello\r\n0\r\n\r\n"), LOOSE);
refused("a size beyond 2^64", chunked("10000000000000005\r\nhello\r\n0\r\n\r\n"));
served("a trailer", chunked("5\r\nhello\r\n0\r\nX: y\r\n\r\n"), "POST /a [hello]");
refused("a length in the trailer", chunked("5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n"), LOOSE);
refused("chunks in the trailer", chunked("5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n"), LOOSE);
refused("a request in the trailer", chunked("5\r\nhello\r\n0\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"), LOOSE);
refused("a request for the end", chunked("5\r\nhello\r\n0\r\nAAGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"), LOOSE);

// Connections.
served("a last request", get("Connection: close"), "GET /a []", { goesOn: false, looseInUws: true });
served("an unknown expectation", `${post("Expect: more", "Content-Length: 5")}hello`, "POST /a [hello]");
