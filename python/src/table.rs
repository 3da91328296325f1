//! Tables as Arrow: whoever speaks the Arrow PyCapsule interface takes them over without a copy.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
    UInt64Builder,
};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use nodecast::report::tables::{Cell, Column, Kind, Sink};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// Rows of a batch. Offsets of text are 32 bits wide, so that a table without end does not fit one.
const BATCH_ROWS: usize = 1 << 18;

/// A table that pyarrow, polars, pandas and whatever else knows the Arrow PyCapsule interface can read: `pyarrow.table(it)`,
/// `polars.DataFrame(it)`.
#[pyclass(frozen, module = "nodecast")]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

/// What Arrow could not do.
fn broken(error: &ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

#[pymethods]
impl Table {
    /// The names of the columns, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<nodecast.Table of {} rows: {}>", self.num_rows(), self.column_names().join(", "))
    }

    /// The table as a stream of Arrow's C interface. What is asked for in `requested_schema` is not heeded, as the interface
    /// allows: the stream says what it has.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }

    /// The schema of the table in Arrow's C interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(|error| broken(&error))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The table as a `pyarrow.Table`.
    fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// The table as a `polars.DataFrame`.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// The table as a `pandas.DataFrame`; needs pyarrow.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::to_pyarrow(slf)?.call_method0("to_pandas")
    }
}

impl Table {
    /// The table that `fill` puts into a sink, columns first.
    ///
    /// # Errors
    /// If `fill` does not keep to its columns.
    pub fn from_fill(fill: impl FnOnce(&mut Columns)) -> PyResult<Self> {
        let mut columns = Columns::default();
        fill(&mut columns);
        columns.finish().map_err(|error| broken(&error))
    }
}

/// The columns of a table that is being made.
#[derive(Default)]
pub struct Columns {
    fields: Vec<Field>,
    builders: Vec<Builder>,
    /// Where the next cell goes.
    next: usize,
    rows: usize,
    batches: Vec<RecordBatch>,
    failed: Option<ArrowError>,
}

enum Builder {
    Text(StringBuilder),
    Whole(Int64Builder),
    Natural(UInt64Builder),
    Number(Float64Builder),
    Flag(BooleanBuilder),
    Time(TimestampMicrosecondBuilder),
}

impl Builder {
    fn from_kind(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Text(StringBuilder::new()),
            Kind::Whole => Self::Whole(Int64Builder::new()),
            // As whoever reads the files has them: exact instants and amounts are in the files.
            Kind::Number | Kind::Seconds | Kind::Money => Self::Number(Float64Builder::new()),
            Kind::Flag => Self::Flag(BooleanBuilder::new()),
            Kind::Time => Self::Time(TimestampMicrosecondBuilder::new().with_timezone("UTC")),
        }
    }

    fn data_type(kind: Kind) -> DataType {
        match kind {
            Kind::Text => DataType::Utf8,
            Kind::Whole => DataType::Int64,
            Kind::Number | Kind::Seconds | Kind::Money => DataType::Float64,
            Kind::Flag => DataType::Boolean,
            Kind::Time => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        }
    }

    /// Takes a cell; a value of another kind than the column's counts as none.
    fn push(&mut self, cell: Cell<'_>) {
        match (self, cell) {
            (Self::Text(column), Cell::Text(text)) => column.append_value(text),
            (Self::Text(column), _) => column.append_null(),
            (Self::Whole(column), Cell::Whole(value)) => column.append_value(value),
            (Self::Whole(column), _) => column.append_null(),
            (Self::Natural(column), _) => column.append_null(),
            (Self::Number(column), Cell::Number(value)) => column.append_value(value),
            (Self::Number(column), Cell::Micros(micros)) => column.append_value(micros as f64 / 1e6),
            (Self::Number(column), Cell::Nanos(nanos)) => column.append_value(nanos as f64 / 1e9),
            (Self::Number(column), _) => column.append_null(),
            (Self::Flag(column), Cell::Flag(value)) => column.append_value(value),
            (Self::Flag(column), _) => column.append_null(),
            (Self::Time(column), Cell::Time(time)) => column.append_value(time.as_microsecond()),
            (Self::Time(column), _) => column.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Text(column) => ArrayBuilder::finish(column),
            Self::Whole(column) => ArrayBuilder::finish(column),
            Self::Natural(column) => ArrayBuilder::finish(column),
            Self::Number(column) => ArrayBuilder::finish(column),
            Self::Flag(column) => ArrayBuilder::finish(column),
            Self::Time(column) => ArrayBuilder::finish(column),
        }
    }
}

impl Columns {
    /// A column of its own name.
    pub fn column(&mut self, name: impl Into<String>, kind: Kind) {
        self.fields.push(Field::new(name, Builder::data_type(kind), true));
        self.builders.push(Builder::from_kind(kind));
    }

    /// A column of numbers that use all 64 bits, such as seeds.
    pub fn column_of_naturals(&mut self, name: &str) {
        self.fields.push(Field::new(name, DataType::UInt64, true));
        self.builders.push(Builder::Natural(UInt64Builder::new()));
    }

    /// A cell of such a column.
    pub fn natural(&mut self, value: u64) {
        self.put(|builder| match builder {
            Builder::Natural(column) => column.append_value(value),
            other => other.push(Cell::Nothing),
        });
    }

    /// Lets `push` fill the next cell.
    fn put(&mut self, push: impl FnOnce(&mut Builder)) {
        if let Some(builder) = self.builders.get_mut(self.next) {
            push(builder);
        }
        self.next += 1;
        if self.next == self.builders.len() {
            self.next = 0;
            self.rows += 1;
            if self.rows == BATCH_ROWS {
                self.end_batch();
            }
        }
    }

    /// A cell that may be without a value.
    pub fn optional(&mut self, cell: Option<Cell<'_>>) {
        self.cell(cell.unwrap_or(Cell::Nothing));
    }

    fn end_batch(&mut self) {
        let schema = Arc::new(Schema::new(self.fields.clone()));
        let arrays = self.builders.iter_mut().map(Builder::finish).collect();
        match RecordBatch::try_new(schema, arrays) {
            Ok(batch) => self.batches.push(batch),
            Err(error) => self.failed = Some(error),
        }
        self.rows = 0;
    }

    fn finish(mut self) -> Result<Table, ArrowError> {
        if self.rows > 0 || self.next > 0 || self.batches.is_empty() {
            self.end_batch();
        }
        match self.failed {
            Some(error) => Err(error),
            None => Ok(Table { schema: Arc::new(Schema::new(self.fields)), batches: self.batches }),
        }
    }
}

impl Sink for Columns {
    fn columns(&mut self, columns: &[Column]) {
        for (name, kind) in columns {
            self.column(*name, *kind);
        }
    }

    fn cell(&mut self, cell: Cell<'_>) {
        self.put(|builder| builder.push(cell));
    }
}
