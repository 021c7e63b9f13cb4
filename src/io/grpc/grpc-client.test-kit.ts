import { Client, credentials, Metadata, type ClientReadableStream, type ServiceError } from "@grpc/grpc-js";

/** A client of the official library that sends and gets messages as bytes. */
export type RawClient = {
  unary(path: string, message: Uint8Array, options?: CallOptions): Promise<Buffer>;
  /** Its events are those of the library; nothing is read before somebody listens or iterates. */
  stream(path: string, message: Uint8Array, options?: CallOptions): ClientReadableStream<Buffer>;
  close(): void;
};

export type CallOptions = { metadata?: Record<string, string>; deadlineMs?: number };

/** `ca`: the certificate that the server's was signed with; plain text without. */
export function rawClient(address: string, ca?: string): RawClient {
  const trust = ca === undefined ? credentials.createInsecure() : credentials.createSsl(Buffer.from(ca));
  const client = new Client(address, trust, { "grpc.max_receive_message_length": -1 });
  const same = (bytes: Buffer): Buffer => bytes;
  const metadataFor = ({ metadata = {} }: CallOptions): Metadata => {
    const made = new Metadata();
    for (const [name, value] of Object.entries(metadata)) made.set(name, value);
    return made;
  };
  const optionsFor = ({ deadlineMs }: CallOptions) =>
    deadlineMs === undefined ? {} : { deadline: new Date(Date.now() + deadlineMs) };
  return {
    unary: (path, message, options = {}) =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest<Buffer, Buffer>(
          path,
          same,
          same,
          Buffer.from(message),
          metadataFor(options),
          optionsFor(options),
          (error, answer) => {
            if (error === null) resolve(answer ?? Buffer.alloc(0));
            else reject(error);
          },
        );
      }),
    stream: (path, message, options = {}) =>
      client.makeServerStreamRequest<Buffer, Buffer>(
        path,
        same,
        same,
        Buffer.from(message),
        metadataFor(options),
        optionsFor(options),
      ),
    close: () => client.close(),
  };
}

/** All messages of an answer, or why there are none. */
export async function messagesOf(stream: ClientReadableStream<Buffer>): Promise<Buffer[]> {
  const messages: Buffer[] = [];
  for await (const message of stream as AsyncIterable<Buffer>) messages.push(message);
  return messages;
}

/** The status that a call fails with; one that succeeds fails the test. */
export async function failureOfCall(call: Promise<unknown>): Promise<ServiceError> {
  try {
    await call;
  } catch (error) {
    return error as ServiceError;
  }
  throw new Error("the call succeeded");
}
