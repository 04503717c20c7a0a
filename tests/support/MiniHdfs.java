import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.namenode.NameNode;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;

/**
 * An HDFS of one node in a folder, at an address of this machine: prints its port, and ends when
 * its standard input does.
 */
public class MiniHdfs {
  public static void main(String[] arguments) {
    try {
      run(arguments);
    } catch (Exception e) {
      e.printStackTrace();
      System.exit(1); // whatever threads it has started
    }
    System.exit(0);
  }

  private static void run(String[] arguments) throws Exception {
    Path folder = Path.of(arguments[0]);
    String place = arguments[1] + ":0";
    Configuration conf = new HdfsConfiguration();
    conf.set("fs.defaultFS", "hdfs://" + place);
    conf.set("dfs.namenode.http-address", place);
    conf.set("dfs.namenode.name.dir", folder.resolve("names").toUri().toString());
    conf.set("dfs.datanode.data.dir", folder.resolve("blocks").toUri().toString());
    conf.set("dfs.datanode.address", place);
    conf.set("dfs.datanode.http.address", place);
    conf.set("dfs.datanode.ipc.address", place);
    conf.setInt("dfs.replication", 1);
    // Addresses of network namespaces have no names.
    conf.setBoolean("dfs.namenode.datanode.registration.ip-hostname-check", false);
    // To make the folder and to serve it takes two name nodes, one after the other.
    DefaultMetricsSystem.setMiniClusterMode(true);
    NameNode.format(conf);
    NameNode names = NameNode.createNameNode(new String[0], conf);
    int port = names.getNameNodeAddress().getPort();
    conf.set("fs.defaultFS", "hdfs://" + arguments[1] + ":" + port);
    DataNode blocks = DataNode.createDataNode(new String[0], conf);
    while (names.getNamesystem().getNumLiveDataNodes() == 0) {
      Thread.sleep(50);
    }
    System.out.println("PORT " + port);
    System.out.flush();
    while (System.in.read() >= 0) {
      continue;
    }
    blocks.shutdown();
    names.stop();
  }
}
