/** The messages and calls of Flight.proto that tests speak, by the official protobuf library and without generated code. */
import { create, createFileRegistry, type DescMessage, type DescService } from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";

const bytesField = (name: string, number: number) => ({
  name,
  number,
  type: FieldDescriptorProto_Type.BYTES,
  label: FieldDescriptorProto_Label.OPTIONAL,
});

const PACKAGE = "arrow.flight.protocol";

const FLIGHT_PROTO = create(FileDescriptorProtoSchema, {
  name: "Flight.proto",
  package: PACKAGE,
  syntax: "proto3",
  messageType: [
    { name: "Ticket", field: [bytesField("ticket", 1)] },
    {
      name: "FlightData",
      field: [bytesField("data_header", 2), bytesField("app_metadata", 3), bytesField("data_body", 1000)],
    },
    { name: "Criteria", field: [bytesField("expression", 1)] },
  ],
  service: [
    {
      name: "FlightService",
      method: [
        { name: "DoGet", inputType: `.${PACKAGE}.Ticket`, outputType: `.${PACKAGE}.FlightData`, serverStreaming: true },
        {
          name: "ListFlights",
          inputType: `.${PACKAGE}.Criteria`,
          outputType: `.${PACKAGE}.FlightData`,
          serverStreaming: true,
        },
        { name: "GetSchema", inputType: `.${PACKAGE}.Criteria`, outputType: `.${PACKAGE}.FlightData` },
      ],
    },
  ],
});

const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: [FLIGHT_PROTO] }));

function messageNamed(name: string): DescMessage {
  const found = registry.getMessage(`${PACKAGE}.${name}`);
  if (found === undefined) throw new Error(`Flight.proto has no ${name}`);
  return found;
}

export const TicketSchema = messageNamed("Ticket");
export const FlightDataSchema = messageNamed("FlightData");

/** A message `FlightData` as the library reads it. */
export type FlightDataFields = { dataHeader: Uint8Array; dataBody: Uint8Array };

export function flightService(): DescService {
  const found = registry.getService(`${PACKAGE}.FlightService`);
  if (found === undefined) throw new Error("Flight.proto has no service");
  return found;
}

/** The Arrow IPC stream that the messages were cut from. */
export function joinFlightData(messages: readonly FlightDataFields[]): Buffer {
  const pieces = messages.flatMap(({ dataHeader, dataBody }) => {
    const prefix = Buffer.alloc(8);
    prefix.writeUInt32LE(0xffff_ffff, 0);
    prefix.writeUInt32LE(dataHeader.byteLength, 4);
    return [prefix, dataHeader, dataBody];
  });
  return Buffer.concat([...pieces, Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0])]);
}
