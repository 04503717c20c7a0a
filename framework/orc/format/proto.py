"""ORC's protobuf messages, in a private descriptor pool.

Names and field numbers are those of the ORC v1 specification. Enums are plain numbers, so that unknown values
survive a copy, as unknown fields do. The private pool cannot clash with another library's ORC messages in the
process.
"""

from __future__ import annotations

import re
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

__all__ = [
    "BloomFilterIndex",
    "ColumnEncoding",
    "ColumnStatistics",
    "ColumnarStripeStatistics",
    "DecodeError",
    "FileStatistics",
    "Footer",
    "Message",
    "Metadata",
    "PostScript",
    "RowIndex",
    "StringPair",
    "StripeFooter",
    "StripeInformation",
    "Type",
]

Message = Any

# One line for each message: its name, then name, type and number of each field. '+' is repeated, '*' packed.
_MESSAGES = """
IntegerStatistics: minimum sint64 1, maximum sint64 2, sum sint64 3
DoubleStatistics: minimum double 1, maximum double 2, sum double 3
StringStatistics: minimum string 1, maximum string 2, sum sint64 3, lower_bound string 4,
    upper_bound string 5
BucketStatistics: count uint64* 1
DecimalStatistics: minimum string 1, maximum string 2, sum string 3
DateStatistics: minimum sint32 1, maximum sint32 2
TimestampStatistics: minimum sint64 1, maximum sint64 2, minimum_utc sint64 3, maximum_utc sint64 4,
    minimum_nanos int32 5, maximum_nanos int32 6
BinaryStatistics: sum sint64 1
CollectionStatistics: min_children uint64 1, max_children uint64 2, total_children uint64 3
ColumnStatistics: number_of_values uint64 1, int_statistics IntegerStatistics 2,
    double_statistics DoubleStatistics 3, string_statistics StringStatistics 4,
    bucket_statistics BucketStatistics 5, decimal_statistics DecimalStatistics 6,
    date_statistics DateStatistics 7, binary_statistics BinaryStatistics 8,
    timestamp_statistics TimestampStatistics 9, has_null bool 10, bytes_on_disk uint64 11,
    collection_statistics CollectionStatistics 12
RowIndexEntry: positions uint64* 1, statistics ColumnStatistics 2
RowIndex: entry RowIndexEntry+ 1
BloomFilter: num_hash_functions uint32 1, utf8bitset bytes 3
BloomFilterIndex: bloom_filter BloomFilter+ 1
Stream: kind uint32 1, column uint32 2, length uint64 3
ColumnEncoding: kind uint32 1, dictionary_size uint32 2, bloom_encoding uint32 3
StripeEncryptionVariant: streams Stream+ 1, encoding ColumnEncoding+ 2
StripeFooter: streams Stream+ 1, columns ColumnEncoding+ 2, writer_timezone string 3,
    encryption StripeEncryptionVariant+ 4
StringPair: key string 1, value string 2
Type: kind uint32 1, subtypes uint32* 2, field_names string+ 3, maximum_length uint32 4, precision uint32 5,
    scale uint32 6, attributes StringPair+ 7
StripeInformation: offset uint64 1, index_length uint64 2, data_length uint64 3, footer_length uint64 4,
    number_of_rows uint64 5, encrypt_stripe_id uint64 6, encrypted_local_keys bytes+ 7
UserMetadataItem: name string 1, value bytes 2
StripeStatistics: col_stats ColumnStatistics+ 1
Metadata: stripe_stats StripeStatistics+ 1
ColumnarStripeStatistics: col_stats ColumnStatistics+ 1
FileStatistics: column ColumnStatistics+ 1
DataMask: name string 1, mask_parameters string+ 2, columns uint32* 3
EncryptionKey: key_name string 1, key_version uint32 2, algorithm uint32 3
EncryptionVariant: root uint32 1, key uint32 2, encrypted_key bytes 3, stripe_statistics Stream+ 4,
    file_statistics bytes 5
Encryption: mask DataMask+ 1, key EncryptionKey+ 2, variants EncryptionVariant+ 3, key_provider uint32 4
Footer: header_length uint64 1, content_length uint64 2, stripes StripeInformation+ 3, types Type+ 4,
    metadata UserMetadataItem+ 5, number_of_rows uint64 6, statistics ColumnStatistics+ 7,
    row_index_stride uint32 8, writer uint32 9, encryption Encryption 10, calendar uint32 11,
    software_version string 12
PostScript: footer_length uint64 1, compression uint32 2, compression_block_size uint64 3, version uint32* 4,
    metadata_length uint64 5, writer_version uint32 6, stripe_statistics_length uint64 7, magic string 8000
"""

_PACKAGE = "lockgate.orc"
_FieldProto = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "double": _FieldProto.TYPE_DOUBLE,
    "uint64": _FieldProto.TYPE_UINT64,
    "int32": _FieldProto.TYPE_INT32,
    "bool": _FieldProto.TYPE_BOOL,
    "string": _FieldProto.TYPE_STRING,
    "bytes": _FieldProto.TYPE_BYTES,
    "uint32": _FieldProto.TYPE_UINT32,
    "sint32": _FieldProto.TYPE_SINT32,
    "sint64": _FieldProto.TYPE_SINT64,
}


def _add_field(message: Any, text: str) -> None:
    name, kind, number = text.split()
    repeated = kind[-1] in "*+"
    field = message.field.add(name=name, number=int(number))
    field.label = _FieldProto.LABEL_REPEATED if repeated else _FieldProto.LABEL_OPTIONAL
    if kind.endswith("*"):
        field.options.packed = True
    kind = kind.rstrip("*+")
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = _FieldProto.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{kind}"


def _message_classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="lockgate_orc.proto", package=_PACKAGE, syntax="proto2")
    for line in re.split(r"\n(?=\S)", _MESSAGES.strip()):
        name, fields = line.split(":", 1)
        message = file.message_type.add(name=name)
        for field in fields.split(","):
            _add_field(message, field)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        message.name: message_factory.GetMessageClass(
            pool.FindMessageTypeByName(f"{_PACKAGE}.{message.name}")
        )
        for message in file.message_type
    }


_CLASSES = _message_classes()

BloomFilterIndex: Any = _CLASSES["BloomFilterIndex"]
ColumnEncoding: Any = _CLASSES["ColumnEncoding"]
ColumnStatistics: Any = _CLASSES["ColumnStatistics"]
ColumnarStripeStatistics: Any = _CLASSES["ColumnarStripeStatistics"]
FileStatistics: Any = _CLASSES["FileStatistics"]
Footer: Any = _CLASSES["Footer"]
Metadata: Any = _CLASSES["Metadata"]
PostScript: Any = _CLASSES["PostScript"]
RowIndex: Any = _CLASSES["RowIndex"]
StringPair: Any = _CLASSES["StringPair"]
StripeFooter: Any = _CLASSES["StripeFooter"]
StripeInformation: Any = _CLASSES["StripeInformation"]
Type: Any = _CLASSES["Type"]
