"""Options: their mechanism, and the options of tables, each a constant of the module of its subject."""

from lockgate.framework.options.changelog_options import *
from lockgate.framework.options.clustering_options import *
from lockgate.framework.options.conf_options import *
from lockgate.framework.options.file_options import *
from lockgate.framework.options.index_options import *
from lockgate.framework.options.layout_options import *
from lockgate.framework.options.merge_options import *
from lockgate.framework.options.option import *
from lockgate.framework.options.partition_options import *
from lockgate.framework.options.read_options import *
from lockgate.framework.options.row_options import *
from lockgate.framework.options.schema_options import *
from lockgate.framework.options.snapshot_options import *
from lockgate.framework.options.table_options import *
from lockgate.framework.options.tag_options import *
